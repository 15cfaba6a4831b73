// What a test asks of a page that is shown: what it finds wrong, as a list of sentences.
(() => {
  const wrong = [];
  const say = (what, where) => wrong.push(`${what}: ${where.outerHTML.slice(0, 160)}`);
  document.querySelectorAll("details").forEach((part) => { part.open = true; });

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    wrong.push(`${root.scrollWidth} pixels of content on ${root.clientWidth} of screen`);
    for (const part of document.querySelectorAll("main *")) {
      if (part.getBoundingClientRect().right > root.clientWidth + 1 && !part.closest(".wide, pre")) say("sticks out", part);
    }
  }

  // Relative luminance and contrast of WCAG 2.2.
  const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const parsed = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = ([red, green, blue]) =>
    0.2126 * channel(red / 255) + 0.7152 * channel(green / 255) + 0.0722 * channel(blue / 255);
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const paper = (part) => {
    for (let at = part; at; at = at.parentElement) {
      const colour = parsed(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const ink = (part) => {
    const style = getComputedStyle(part);
    return parsed(part.closest("svg") ? style.fill : style.color);
  };
  for (const cell of document.querySelectorAll("table.answer tbody th, table.answer tbody td")) {
    if (cell.scrollWidth > cell.clientWidth + 1) say("runs into the next column", cell);
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  while (walker.nextNode()) {
    const part = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || part.closest("title") || !part.getClientRects().length) continue;
    texts += 1;
    const found = contrast(ink(part), paper(part));
    if (found < 4.5) say(`contrast ${found.toFixed(2)}`, part);
  }
  if (texts < 50) wrong.push(`${texts} texts are shown`);

  for (const mark of document.querySelectorAll("figure svg circle, figure svg polygon, .interval circle")) {
    const found = contrast(parsed(getComputedStyle(mark).fill), paper(mark));
    if (found < 2.9) say(`contrast ${found.toFixed(2)} of a mark`, mark);
  }
  for (const word of document.querySelectorAll("svg text")) {
    const height = parseFloat(getComputedStyle(word).fontSize) * Math.hypot(word.getScreenCTM().a, word.getScreenCTM().b);
    // On paper a plot may be as wide as half of it.
    if (height < 9 && !matchMedia("print").matches) say(`letters of ${height.toFixed(1)} pixels`, word);
    const [own, page] = [word.getBoundingClientRect(), word.ownerSVGElement.getBoundingClientRect()];
    if (own.left < page.left - 1 || own.right > page.right + 1) say("runs out of its plot", word);
    if (own.top < page.top - 1 || own.bottom > page.bottom + 1) say("runs out of its plot", word);
  }

  if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
  if (!document.querySelector("main") || !document.querySelector("nav[aria-label]")) wrong.push("no landmarks");
  const ids = [...document.querySelectorAll("[id]")].map((part) => part.id);
  if (new Set(ids).size !== ids.length) wrong.push("an id stands twice");
  for (const link of document.querySelectorAll("a[href^='#']")) {
    if (!document.getElementById(link.hash.slice(1))) say("leads nowhere", link);
  }
  for (const drawing of document.querySelectorAll("svg:not([aria-hidden])")) {
    if (!drawing.querySelector("title")?.textContent.trim()) say("has no name", drawing);
  }
  for (const part of document.querySelectorAll("[role=region], [role=group]")) {
    if (!part.getAttribute("aria-label")?.trim()) say("has no name", part);
  }
  for (const part of document.querySelectorAll("pre, .wide")) {
    if (part.scrollWidth > part.clientWidth + 1 && part.tabIndex !== 0 && !matchMedia("print").matches) {
      say("scrolls, and not by keyboard", part);
    }
  }
  return wrong;
})()
