// The page: what is chosen, the runs that this asks for, and what is drawn of their figures.
"use strict";
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);

const DISCIPLINES = {
  "freebsd-interrupt": { colour: "--interrupt", about: "" },
  "freebsd-polling": { colour: "--blue", about: ", polling(4)" },
  napi: { colour: "--user", about: ", Linux" },
  "napi-timer": { colour: "--system", about: ", Linux polling by a timer" },
  "busy-poll": { colour: "--amber", about: ", Linux polling by programs" },
};
const ALL = Object.keys(DISCIPLINES);
const [FREEBSD, LINUX] = [ALL.slice(0, 2), ALL.slice(2)];
// A host alone takes packets from an ideal far end; on a path iperf on the first host sends to the last.
const PRESETS = [
  { group: "Examples", name: "generic: one slow processor, 1 Gbit/s", hosts: ["generic"], most: 240e3, load: 80e3 },
  { group: "Examples", name: "linux: a current server's core, 10 Gbit/s", hosts: ["linux"], most: 2400e3, load: 1200e3, disciplines: LINUX },
  { group: "Published tests", name: "A: two servers, 1 Gbit/s, 2006", hosts: ["asa633", "poweredge"], most: 48e3, mbits: 500, payload: 1470 },
  { group: "Published tests", name: "C: thin clients, 100 Mbit/s, 2011", hosts: ["t5000", "t5000"], most: 19200, mbits: 200, payload: 1470, sleeps: true },
  { group: "Published tests", name: "E: router net6501, 1 Gbit/s, 2012", hosts: ["node", "net6501", "node"], most: 96e3, mbits: 1000, payload: 1470, with: "storm.threshold=0" },
  { group: "Published tests", name: "D: market data, four lines, 2011", hosts: ["marketdata"], most: 600e3, load: 400e3, payload: 434, links: 4, disciplines: LINUX },
  { group: "Hosts of these tests, alone", name: "poweredge: a server of 2000", hosts: ["poweredge"], most: 48e3, load: 12e3 },
  { group: "Hosts of these tests, alone", name: "t5000: a thin client", hosts: ["t5000"], most: 120e3, load: 12e3 },
  { group: "Hosts of these tests, alone", name: "wrap: an embedded router of 2004", hosts: ["wrap"], most: 12e3, load: 3000 },
  { group: "Hosts of these tests, alone", name: "net6501: an embedded router of 2012", hosts: ["net6501"], most: 96e3, load: 30e3 },
];
const STATES = [
  ["user", "program", "user_ratio"], ["system", "system calls, threads", "system_ratio"],
  ["soft", "protocols, polling", "soft_interrupt_ratio"], ["interrupt", "interrupts", "interrupt_ratio"],
  ["idle", "idle", "idle_ratio"],
];
const PLACES = [
  ["far_queue", "queue at the far end"], ["rx_ring", "receive ring"], ["ip_queue", "IP input queue"],
  ["reassembly", "reassembly"], ["socket_buffer", "socket buffer"], ["send_queue", "send queue"],
];
const POINTS = 24;

const whole = (value) => Math.round(value).toLocaleString("en-US");
const percent = (ratio) => `${(100 * ratio).toFixed(1)} %`;
const time = (ns) => (ns >= 1e6 ? `${(ns / 1e6).toPrecision(3)} ms` : `${(ns / 1e3).toPrecision(3)} \u00b5s`);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// ---- What is chosen

const isPath = (preset) => preset.hosts.length > 1;
const payloadOf = (preset) => preset.payload ?? 64;
/// The host that the test is about: the router of a path, or its receiver.
const subject = (preset) => preset.hosts[Math.floor(preset.hosts.length / 2)];
const hzOf = (preset) => data.hosts[subject(preset)].hz;
const loadOf = (preset) => preset.load ?? (preset.mbits * 1e6) / 8 / payloadOf(preset);
const ascending = (values) => [...new Set(values)].sort((a, b) => a - b);

const SLIDERS = [
  {
    id: "load", name: (preset) => (isPath(preset) ? "Asked of the sender" : "Offered load"), start: loadOf,
    values: (preset) => ascending([...Array(240).keys()].map((step) => ((step + 1) * preset.most) / 240)
      .concat(loadOf(preset), publishedPoints(preset).map((point) => point.load))),
    text: (value) => `${whole(value)} packets/s`,
  },
  {
    id: "payload", name: () => "Packet size", start: payloadOf,
    values: (preset) => ascending([18, 64, 128, 256, 512, 768, 1024, 1280, 1472, payloadOf(preset)]),
    text: (value) => `${value} bytes of payload`,
  },
  {
    id: "speed", name: () => "CPU speed", start: () => 100, values: () => [25, 35, 50, 70, 100, 140, 200, 280, 400],
    text: (value) => (value === 100 ? "as the host's" : `${value / 100} times the host's`),
  },
  {
    id: "hz", name: () => "Clock ticks (HZ)", start: hzOf,
    values: (preset) => ascending([100, 250, 500, 1000, 2000, 4000, hzOf(preset)]),
    text: (value) => `${whole(value)} a second`,
  },
  {
    id: "burst", name: () => "burst_max (polling)", start: () => 150,
    values: () => [10, 20, 50, 100, 150, 200, 300, 500, 1000, 2000], text: (value) => `${whole(value)} packets a tick`,
  },
  {
    id: "user", name: () => "user_frac (polling)", start: () => 50,
    values: () => [0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95], text: (value) => `${value} % for programs`,
  },
];

const chosen = { preset: PRESETS[0], discipline: "freebsd-interrupt", seed: 1 };

const disciplinesOf = (preset) => preset.disciplines ?? (isPath(preset) ? FREEBSD : ALL);
const isAsPublished = () => SLIDERS.every(({ id, start }) => chosen[id] === start(chosen.preset));

/// A discipline with the options that the sliders give it, as the program reads it.
function spelled(discipline) {
  const { preset } = chosen;
  const set = (name, value, usual) => (value === usual ? "" : `:${name}=${value}`);
  const own = discipline === "freebsd-polling"
    ? set("user_frac", chosen.user, 50) + set("burst_max", chosen.burst, 150) : "";
  return discipline + own + set("cpu.hz", chosen.hz, hzOf(preset))
    + set("cpu.speed_percent", chosen.speed, 100) + (preset.with ? `:${preset.with}` : "");
}

function workload(load) {
  const { preset, payload } = chosen;
  if (isPath(preset)) {
    return `iperf-udp:rate=${Math.round(load * payload * 8)}:payload=${payload}${preset.sleeps ? ":sleep=1" : ""}`;
  }
  const links = preset.links ? `:links=${preset.links}` : "";
  return `${preset.links ? "pulses" : "poisson"}:rate=${Math.round(load)}:payload=${payload}${links}`;
}

/// The words of a run for the program in the page.
function words(discipline, load, [warmup, duration], slices = 0) {
  const stops = chosen.preset.hosts.flatMap((host) => [host, spelled(discipline)]);
  return [chosen.seed, warmup, duration, slices, workload(load), ...stops].map(String);
}

/// Warm-up and length of the points of a curve: short, but until the poller's burst has climbed.
function span(disciplines) {
  const climb = disciplines.includes("freebsd-polling") ? (1100 * chosen.burst) / chosen.hz : 0;
  const length = chosen.preset.most > 300e3 ? 50 : 100;
  return [`${Math.max(length, Math.ceil(climb))}ms`, `${length}ms`];
}

function command() {
  const { hosts } = chosen.preset;
  const through = hosts.slice(1, -1).map((host) => ` --through ${host}`).join("");
  const peer = isPath(chosen.preset) ? `${through} --peer ${hosts.at(-1)}` : "";
  return `nicpoll sim run ${hosts[0]}${peer} --discipline ${spelled(chosen.discipline)} --workload ${workload(chosen.load)}`
    + ` --duration 1s --seed ${chosen.seed} --no-explain --json | sha256sum`;
}

function sweepCommand() {
  const { preset } = chosen;
  const kind = workload(1).replace(":rate=1", "");
  const [warmup, duration] = span(disciplinesOf(preset));
  return `nicpoll sim sweep ${preset.hosts[0]} --over offered=${preset.most / POINTS}..${preset.most}:${POINTS}`
    + ` --workload ${kind} --disciplines ${disciplinesOf(preset).map(spelled).join(",")} --warmup ${warmup}`
    + ` --duration ${duration} --seed ${chosen.seed}`;
}

// ---- The runs

const cache = new Map();
const pool = { idle: [], running: new Set(), queue: [] };

const keyOf = (list) => list.join(" ");
const presentWords = () => words(chosen.discipline, chosen.load, [0, "1s"]);
const windowMs = () => Math.max(4, 4000 / chosen.hz);
const stripWords = () => words(chosen.discipline, chosen.load, [0, `${windowMs()}ms`], 500);
const loads = () => [...Array(POINTS).keys()].map((point) => ((point + 1) * chosen.preset.most) / POINTS);
const pointWords = (discipline, load) =>
  words(discipline, load, span(isPath(chosen.preset) ? [discipline] : disciplinesOf(chosen.preset)));

/// Every run that the choice asks for, the most wanted first: the chosen one, then the curves from coarse to fine.
function wanted() {
  const jobs = [{ words: presentWords() }];
  if (!isPath(chosen.preset)) jobs.push({ words: stripWords() });
  const others = disciplinesOf(chosen.preset).filter((name) => name !== chosen.discipline);
  const coarse = [...loads().keys()].sort((a, b) => (b % 6 === 5) - (a % 6 === 5) || (b % 3 === 2) - (a % 3 === 2));
  for (const name of [chosen.discipline, ...others]) {
    for (const point of coarse) jobs.push({ words: pointWords(name, loads()[point]), keep: "rate" });
  }
  return jobs;
}

function refresh() {
  if (cache.size > 5000) cache.clear();
  pool.queue = wanted().filter(({ words }) => !cache.has(keyOf(words)) && !pool.running.has(keyOf(words)));
  document.body.dataset.state = "run";
  feed();
  draw();
}

function feed() {
  while (pool.queue.length && pool.idle.length) {
    const [job, worker] = [pool.queue.shift(), pool.idle.pop()];
    const key = keyOf(job.words);
    pool.running.add(key);
    worker.onmessage = ({ data: answer }) => {
      pool.running.delete(key);
      pool.idle.push(worker);
      cache.set(key, answer);
      feed();
      draw();
    };
    worker.postMessage(job);
  }
}

async function start() {
  const packed = Uint8Array.from(atob($("wasm").textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const program = await new Response(stream).arrayBuffer();
  const source = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
  for (let count = Math.min(8, navigator.hardwareConcurrency || 1); count > 0; count -= 1) {
    const worker = new Worker(source);
    worker.postMessage({ program });
    pool.idle.push(worker);
  }
  refresh();
}

// ---- What was published

/// A workload of a published table as its parts: "iperf-udp:rate=500m:payload=1470".
function parsed(text) {
  const [kind, ...options] = text.split(":");
  const units = { k: 1e3, m: 1e6, g: 1e9 };
  const number = (value) => parseFloat(value) * (units[value.at(-1)] ?? 1);
  return { kind, ...Object.fromEntries(options.map((option) => option.split("=")).map(([name, value]) => [name, number(value)])) };
}

/// The published runs of a preset's hosts with its traffic.
function publishedRuns(preset) {
  const runs = data.published.flatMap(({ table, run }) => run.map((it) => ({ table, ...it })));
  return runs.filter((run) => {
    if (run.hosts?.join() !== preset.hosts.join()) return false;
    const of = parsed(run.workload);
    const isKind = of.kind === (preset.links ? "pulses" : "iperf-udp");
    return isKind && of.payload === payloadOf(preset) && (of.ip ?? 4) === 4;
  });
}

function publishedPoints(preset) {
  const points = [];
  for (const run of publishedRuns(preset)) {
    const of = parsed(run.workload);
    const figure = (name) => {
      const found = run.figures.find(({ quantity }) => quantity === name);
      return found?.measured.length ? mean(found.measured) : undefined;
    };
    const bits = 8 * of.payload;
    const [payload, sent] = [figure("delivered_payload"), figure("sent_packets")];
    const delivered = figure("delivered_rate") ?? (payload ? (payload * 1e6) / bits : undefined)
      ?? (sent ? (sent - figure("lost_packets")) / run.seconds : undefined);
    if (delivered === undefined) continue;
    points.push({ run, load: of.kind === "pulses" ? of.rate : of.rate / bits, delivered });
  }
  return points;
}

/// A published quantity in a simulated run, in its published unit.
function simulated(quantity, run, { figures, plan }) {
  const [flow, hosts] = [figures.flows[0], figures.hosts];
  const count = (each) => (each * run.seconds) / plan.seconds;
  const [place, state] = quantity.split(".");
  const host = { sender: hosts[0], router: hosts[1], receiver: hosts.at(-1) }[place];
  if (host) {
    const cpu = run.sampled ? host.cpu_sampled : host.cpu;
    const share = state === "interrupt" ? cpu?.interrupt_ratio + cpu?.soft_interrupt_ratio : cpu?.[`${state}_ratio`];
    return 100 * share;
  }
  switch (quantity) {
    case "sent_payload": return flow.sent_payload_bits_per_second / 1e6;
    case "delivered_payload": return flow.delivered_payload_bits_per_second / 1e6;
    case "delivered_rate": return flow.delivered_packets_per_second;
    case "sent_packets": return count(flow.sent_packets_per_second * plan.seconds);
    case "lost_packets": return count(flow.missing_datagrams);
    case "loss": return (100 * flow.missing_datagrams) / (flow.sent_packets_per_second * plan.seconds);
    case "jitter": return flow.jitter_ns / 1e6;
    case "out_of_order": return count(flow.out_of_order_datagrams);
    default: return NaN;
  }
}

// ---- What is drawn

const SVG = "http://www.w3.org/2000/svg";
const colour = (name) => `var(${DISCIPLINES[name].colour})`;

function add(parent, name, attributes = {}, text = "") {
  const part = parent.namespaceURI === SVG ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
  part.textContent = text;
  parent.append(part);
  return part;
}

/// The next of 1, 2, 2.5, 5 and 10 times a power of ten.
function round(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value);
}

/// What was drawn last, until what is new has come.
const last = { curves: new Map(), present: undefined, top: 0 };

function curves() {
  const all = new Map();
  for (const name of disciplinesOf(chosen.preset)) {
    const points = loads().map((load) => [load, cache.get(keyOf(pointWords(name, load)))?.figures]);
    const known = points.filter(([, delivered]) => delivered !== undefined);
    if (known.length === POINTS) last.curves.set(name, known);
    all.set(name, known);
  }
  return all;
}

function drawCurve(present) {
  const svg = $("curve");
  const [width, height] = [svg.clientWidth || 640, Math.min(420, Math.max(220, window.innerHeight * (svg.clientWidth < 600 ? 0.34 : 0.42)))];
  const box = { left: 52, right: 12, top: 24, bottom: 40 };
  const shown = curves();
  const published = publishedPoints(chosen.preset);
  const values = [...shown.values()].flat().map(([, delivered]) => delivered).concat(published.map((it) => it.delivered));
  last.top = Math.max(last.top, round(Math.max(...values, chosen.preset.most / 20) * 1.02));
  const { most } = chosen.preset;
  const x = (load) => box.left + (load / most) * (width - box.left - box.right);
  const y = (rate) => height - box.bottom - (rate / last.top) * (height - box.top - box.bottom);
  const short = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1000 ? `${value / 1000}k` : `${value}`);

  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  const name = svg.querySelector("title");
  svg.replaceChildren(name);
  const step = round(last.top / 5);
  for (let at = 0; at <= last.top * 1.001; at += step) {
    add(svg, "line", { class: "grid", x1: box.left, x2: width - box.right, y1: y(at), y2: y(at) });
    add(svg, "text", { x: box.left - 6, y: y(at) + 4, "text-anchor": "end", "font-size": 12 }, short(at));
  }
  const wide = round(most / (width < 500 ? 4 : 8));
  for (let at = 0; at <= most * 1.001; at += wide) {
    const anchor = at + wide > most * 1.001 && x(at) > width - 40 ? "end" : "middle";
    add(svg, "text", { x: Math.min(x(at), width - 2), y: height - box.bottom + 16, "text-anchor": anchor, "font-size": 12 }, short(at));
  }
  add(svg, "line", { class: "axis", x1: box.left, x2: width - box.right, y1: y(0), y2: y(0) });
  add(svg, "text", { x: 4, y: 13, "font-size": 12 }, "delivered, packets/s");
  const offered = isPath(chosen.preset) ? "asked of the sender, packets/s" : "offered, packets/s";
  add(svg, "text", { x: width - box.right, y: height - 6, "text-anchor": "end", "font-size": 12 }, offered);
  const end = Math.min(most, last.top);
  add(svg, "line", { class: "all", x1: x(0), y1: y(0), x2: x(end), y2: y(end) });
  add(svg, "line", { class: "now", x1: x(chosen.load), x2: x(chosen.load), y1: y(0), y2: box.top });

  const path = (points) => [[0, 0], ...points].map(([load, rate], at) => `${at ? "L" : "M"}${x(load).toFixed(1)} ${y(rate).toFixed(1)}`).join("");
  const order = [...shown].sort(([one], [other]) => (one === chosen.discipline) - (other === chosen.discipline));
  for (const [of, points] of order) {
    const isChosen = of === chosen.discipline ? "chosen" : "";
    const before = last.curves.get(of);
    if (before && points.length < POINTS) add(svg, "path", { d: path(before), stroke: colour(of), opacity: 0.3 });
    if (points.length) add(svg, "path", { d: path(points), class: isChosen, stroke: colour(of) });
  }
  for (const { run, load, delivered } of published) {
    const [at, rate, r] = [x(load), y(delivered), 9];
    const mark = add(svg, "polygon", { class: "published", fill: colour(run.discipline), points: `${at - r},${rate} ${at},${rate - r} ${at + r},${rate} ${at},${rate + r}` });
    add(mark, "title", {}, `Published: ${run.name}, ${whole(delivered)} packets/s`);
  }
  if (present) {
    const rate = present.figures.figures.delivered_packets_per_second;
    add(svg, "circle", { class: "ring", cx: x(chosen.load), cy: y(rate), r: 5, fill: colour(chosen.discipline) });
  }
  name.textContent = `Packets delivered against packets offered under ${[...shown.keys()].join(", ")}; chosen: ${chosen.discipline}`;
}

/// What the processor did from moment to moment, a lane for each state.
function drawLanes() {
  const answer = isPath(chosen.preset) ? undefined : cache.get(keyOf(stripWords()));
  if (!answer?.figures) return;
  const { slices } = answer.figures.figures;
  const style = getComputedStyle(document.documentElement);
  for (const canvas of document.querySelectorAll("#shares canvas")) {
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth * scale, canvas.clientHeight * scale];
    Object.assign(canvas, { width, height });
    const pen = canvas.getContext("2d");
    pen.fillStyle = style.getPropertyValue(canvas.dataset.colour);
    slices.forEach(({ cpu }, number) => {
      const share = cpu[canvas.dataset.state] * height;
      const left = Math.floor((number * width) / slices.length);
      pen.fillRect(left, height - share, Math.ceil((width * (number + 1)) / slices.length) - left, share);
    });
  }
}

function shareBars({ figures: { hosts } }) {
  const box = $("shares");
  const isAlone = hosts.length === 1;
  box.replaceChildren();
  hosts.forEach((host, number) => {
    const doing = number === 0 ? "sends" : number + 1 < hosts.length ? "forwards" : "receives";
    if (!isAlone) add(box, "div", { class: "name" }, `${host.host} ${doing}`);
    const stack = add(box, "div", { class: "stack", "aria-hidden": "true" });
    for (const [state, text, field] of STATES) {
      const ratio = host.cpu[field];
      add(stack, "span", { class: state, style: `width:${100 * ratio}%` });
      const row = add(box, "div", { class: "bar" });
      const name = add(row, "span", { class: "key" });
      add(name, "i", { class: state });
      name.append(text);
      if (isAlone) add(row, "canvas", { "data-state": field, "data-colour": `--${state === "idle" ? "span" : state}`, "aria-hidden": "true" });
      else bar(row, state, ratio);
      add(row, "b", {}, percent(ratio));
    }
  });
  $("time-note").textContent = `Shares of a second.${isAlone ? ` The lanes: ${windowMs()} ms of it, from left to right, at ${windowMs() * 2} \u00b5s each.` : ""}`;
}

function bar(row, kind, ratio) {
  add(add(row, "span", { class: "track", "aria-hidden": "true" }), "i", { class: kind, style: `width:${Math.min(100, 100 * ratio)}%` });
}

function ledger({ figures }) {
  const { ledger: all, hosts } = figures;
  const box = $("ledger");
  box.replaceChildren();
  const line = (name, count, kind) => {
    const row = add(box, "div", { class: "bar" });
    const ratio = count / (all.offered_datagrams || 1);
    add(row, "span", {}, name);
    bar(row, kind, ratio);
    add(row, "b", {}, percent(ratio));
  };
  line("delivered", all.delivered_datagrams, "delivered");
  const usual = ["rx_ring", "ip_queue", "socket_buffer"];
  hosts.forEach((host, number) => {
    for (const [place, name] of PLACES) {
      const lost = all.losses.find((loss) => loss.host === number && loss.place === place)?.datagrams ?? 0;
      const isShown = lost > 0 || (hosts.length === 1 && usual.includes(place));
      if (isShown) line(`lost: ${hosts.length > 1 ? `${host.host}, ` : ""}${name}`, lost, "dropped");
    }
  });
  $("losses-note").textContent = `Of ${whole(all.offered_datagrams)} packets in a second. What is lost in the receive ring`
    + " has cost the processor nothing; what is lost at the socket, all the kernel's work.";
}

function figureList({ figures, bottleneck }) {
  const list = $("numbers");
  list.replaceChildren();
  const row = (name, text) => {
    const line = add(list, "div");
    add(line, "dt", {}, name);
    add(line, "dd", {}, text);
  };
  const { latency, hosts } = figures;
  const host = hosts[Math.floor(hosts.length / 2)];
  row("Offered", `${whole(figures.offered_packets_per_second)} packets/s`);
  row("Delivered", `${whole(figures.delivered_packets_per_second)} packets/s, ${(figures.delivered_payload_bits_per_second / 1e6).toFixed(1)} Mbit/s of payload`);
  row("Latency", latency.samples ? `median ${time(latency.p50_ns)}, 99 % within ${time(latency.p99_ns)}` : "nothing was delivered");
  row("Interrupts", `${whole(host.interrupts)} a second${hosts.length > 1 ? ` of ${host.host}` : ""}`);
  row("Context switches", `${whole(host.context_switches)} a second`);
  $("bottleneck").textContent = `${bottleneck.is_binding ? "The limit" : "Nothing limits it; fullest"}: ${bottleneck.resource}. ${bottleneck.explanation}`;
}

function publishedTable(run) {
  const { preset } = chosen;
  const of = publishedRuns(preset).find((it) => it.discipline === chosen.discipline && (it.with ?? "") === (preset.with ?? "")
    && publishedPoints(preset).some((point) => point.run.name === it.name && point.load === loadOf(preset)));
  const isTest = publishedRuns(preset).length > 0;
  $("published").hidden = $("to-published").hidden = !isTest;
  if (!isTest) return;
  const table = $("published-table");
  table.replaceChildren();
  $("published-note").textContent = of
    ? `Table ${of.table}: ${of.name}. ${isAsPublished() ? "The simulated column is one run of this page." : "The sliders have moved: the simulated column is another setup than the published one."} `
      + [of.knife_edge, of.missing].filter(Boolean).join(" ")
    : "Nothing was published about this discipline on these hosts.";
  if (!of) return;
  const head = add(add(table, "thead"), "tr");
  for (const name of ["quantity", "published", "simulated"]) add(head, "th", { scope: "col" }, name);
  const body = add(table, "tbody");
  for (const { quantity, unit, measured } of of.figures.filter((it) => it.measured.length)) {
    const line = add(body, "tr");
    const value = simulated(quantity, of, run);
    const digits = (number) => (Math.abs(number) >= 1000 ? whole(number) : String(Number(number.toPrecision(3))));
    add(line, "th", { scope: "row" }, `${quantity.replace(".", ": ").replaceAll("_", " ")}, ${unit}`);
    add(line, "td", {}, digits(mean(measured)));
    add(line, "td", {}, Number.isFinite(value) ? digits(value) : "-");
  }
}

let isDrawn = true;
function draw() {
  if (!isDrawn) return;
  isDrawn = false;
  requestAnimationFrame(() => {
    isDrawn = true;
    const answer = cache.get(keyOf(presentWords()));
    drawCurve(answer?.figures && answer);
    if (answer && answer !== last.present) drawRun(answer);
    drawLanes();
    if (answer) document.body.dataset.state = pool.queue.length || pool.running.size ? "curves" : "done";
  });
}

function drawRun(answer) {
  last.present = answer;
  if (answer.refusal) {
    $("status").textContent = answer.refusal;
    $("digest").textContent = "";
    return;
  }
  const { figures } = answer.figures;
  const lost = figures.loss_ratio ?? 0;
  $("status").textContent = `${chosen.discipline}: ${whole(figures.offered_packets_per_second)} packets/s offered, `
    + `${whole(figures.delivered_packets_per_second)} delivered, ${percent(lost)} lost.`;
  shareBars(answer.figures);
  ledger(answer.figures);
  figureList(answer.figures);
  publishedTable(answer.figures);
  $("digest").textContent = answer.digest;
  $("command").textContent = command();
}

// ---- The form

function pick(preset) {
  Object.assign(chosen, { preset });
  [chosen.discipline] = disciplinesOf(preset);
  for (const { id, start: usual } of SLIDERS) chosen[id] = usual(preset);
  Object.assign(last, { curves: new Map(), present: undefined, top: 0 });
  $("about").textContent = [...new Set(preset.hosts)].map((host) => `${data.hosts[host].about}.`).join(" ");
  $("curve-note").textContent = publishedPoints(preset).length
    ? "Diamonds were published; lines and dot are simulated. The dashed line: all of it."
    : "The dashed line: all of it. The dot: the chosen load.";
  const box = $("disciplines");
  box.replaceChildren();
  for (const name of disciplinesOf(preset)) {
    const label = add(box, "label", { class: "choice" });
    const radio = add(label, "input", { type: "radio", name: "discipline", value: name });
    radio.checked = name === chosen.discipline;
    radio.addEventListener("change", () => { chosen.discipline = name; changed(); });
    add(label, "span", { class: "line", style: `background:${colour(name)}` });
    add(label, "span", {}, name + DISCIPLINES[name].about);
  }
  sliders();
  changed();
}

function sliders() {
  const box = $("sliders");
  box.replaceChildren();
  for (const { id, name, values, text } of SLIDERS) {
    const steps = values(chosen.preset);
    const row = add(box, "div", { class: "slider" });
    add(row, "label", { for: id }, name(chosen.preset));
    const output = add(row, "output", { for: id });
    const input = add(row, "input", { type: "range", id, min: 0, max: steps.length - 1, step: 1 });
    const show = () => {
      output.textContent = text(chosen[id]);
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.value = steps.indexOf(chosen[id]);
    input.addEventListener("input", () => {
      chosen[id] = steps[input.value];
      show();
      changed();
    });
    show();
  }
}

function changed() {
  $("sweep-part").hidden = isPath(chosen.preset);
  $("sweep-command").textContent = isPath(chosen.preset) ? "" : sweepCommand();
  refresh();
}

for (const [number, preset] of PRESETS.entries()) {
  const group = [...$("preset").children].find(({ label }) => label === preset.group) ?? add($("preset"), "optgroup", { label: preset.group });
  add(group, "option", { value: number }, preset.name);
}
$("preset").addEventListener("change", ({ target }) => pick(PRESETS[target.value]));
$("seed").addEventListener("input", ({ target }) => {
  chosen.seed = Math.min(4294967295, Math.max(0, Math.trunc(Number(target.value)) || 0));
  changed();
});
$("reset").addEventListener("click", () => pick(chosen.preset));
$("controls").addEventListener("submit", (event) => event.preventDefault());
new ResizeObserver(draw).observe($("curve").parentElement);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
pick(chosen.preset);
start().catch((error) => {
  $("status").textContent = `The simulator does not start in this browser: ${error}`;
});
