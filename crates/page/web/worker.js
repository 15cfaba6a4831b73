// Runs the simulator, off the page's thread: a call of the WASI program for each run that the page asks for. The
// program gets arguments and no environment, files or clock; what it prints is the answer.
"use strict";
let compiled;

function call(words) {
  const encoder = new TextEncoder();
  const args = ["nicpoll-page", ...words].map((word) => encoder.encode(`${word}\0`));
  const printed = [];
  let code = 0;
  let memory;
  const bytes = () => new Uint8Array(memory.buffer);
  const view = () => new DataView(memory.buffer);
  const none = (count, size) => {
    view().setUint32(count, 0, true);
    view().setUint32(size, 0, true);
    return 0;
  };
  const wasi = {
    args_sizes_get(count, size) {
      view().setUint32(count, args.length, true);
      view().setUint32(size, args.reduce((sum, arg) => sum + arg.length, 0), true);
      return 0;
    },
    args_get(places, at) {
      args.forEach((arg, number) => {
        view().setUint32(places + 4 * number, at, true);
        bytes().set(arg, at);
        at += arg.length;
      });
      return 0;
    },
    environ_sizes_get: none,
    environ_get: () => 0,
    // Seeds hash tables alone: random numbers of a run come from its own seed.
    random_get: () => 0,
    fd_write(_file, parts, count, written) {
      let sum = 0;
      for (let part = parts; part < parts + 8 * count; part += 8) {
        const [at, length] = [view().getUint32(part, true), view().getUint32(part + 4, true)];
        printed.push(bytes().slice(at, at + length));
        sum += length;
      }
      view().setUint32(written, sum, true);
      return 0;
    },
    proc_exit(status) {
      code = status;
      throw wasi;
    },
  };
  const program = new WebAssembly.Instance(compiled, { wasi_snapshot_preview1: wasi });
  memory = program.exports.memory;
  try {
    program.exports._start();
  } catch (thrown) {
    if (thrown !== wasi) throw thrown;
  }
  const decoder = new TextDecoder();
  const text = printed.map((part) => decoder.decode(part, { stream: true })).join("") + decoder.decode();
  return { code, text };
}

onmessage = ({ data: { program, words, keep } }) => {
  if (program) {
    compiled = new WebAssembly.Module(program);
    return;
  }
  try {
    const { code, text } = call(words);
    if (code !== 0) {
      postMessage({ refusal: text });
      return;
    }
    const end = text.indexOf("\n");
    const run = JSON.parse(text.slice(end));
    // A point of a curve is one number of the thousands.
    const figures = keep === "rate" ? run.figures.delivered_packets_per_second : run;
    postMessage({ digest: text.slice(0, end), figures });
  } catch (error) {
    postMessage({ refusal: `The simulator stopped: ${error}` });
  }
};
