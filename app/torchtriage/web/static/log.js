// The log viewer: pieces come as they are scrolled to, lines are found without a new page; all of it works without.

const viewer = document.querySelector(".viewer");
const pieces = viewer.querySelector("#pieces");
const said = viewer.querySelector("#said");
const words = viewer.dataset;
const MAX_PIECES = 14; // pieces that are kept; those far away go

const marks = words.marks ? words.marks.split(" ").map(Number) : [];
const total = Number(words.lines);
const query = viewer.querySelector("#q");
let here = Number(viewer.querySelector("#seek [name=line]").value) || 1;
let looking = 0;

const at = (line) => document.getElementById(`L${line}`);
const parts = () => [...pieces.querySelectorAll(":scope > ol.piece")];
const fetched = async (address) => {
  const text = await fetch(address).then((got) => (got.ok ? got.text() : null), () => null);
  return text && new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
};
const regex = viewer.querySelector("#seek [name=regex]");
const asked = (more) => {
  const given = {
    file: words.file, rank: words.rank, q: query.value.trim(), regex: regex.checked && query.value.trim() ? "1" : "", wrap: words.wrap, ...more,
  };
  return new URLSearchParams(Object.entries(given).filter(([, value]) => value !== "" && value !== undefined && value !== null));
};

// Lines come in above without moving those that are read.
const keeping = (change) => {
  const still = [...pieces.querySelectorAll("li")].find((line) => line.getBoundingClientRect().bottom > 0);
  const before = still?.getBoundingClientRect().top;
  change();
  if (still?.isConnected) scrollBy(0, still.getBoundingClientRect().top - before);
};
let loading = false;
const more = async (earlier) => {
  const edge = earlier ? parts().at(0) : parts().at(-1);
  const address = edge?.dataset[earlier ? "earlier" : "later"];
  if (loading || !address) return;
  loading = true;
  const piece = await fetched(address);
  loading = false;
  if (!piece?.matches("ol.piece")) { said.textContent = words.broken; return; }
  if (!edge.isConnected) return;
  keeping(() => {
    if (earlier) edge.before(piece); else edge.after(piece);
    if (parts().length > MAX_PIECES) (earlier ? parts().at(-1) : parts().at(0)).remove();
  });
  near();
};
const near = (event) => {
  const [first, last] = [parts().at(0), parts().at(-1)];
  viewer.classList.toggle("coming", Boolean(last?.dataset.later));
  if (last && last.getBoundingClientRect().bottom < innerHeight + 1500) more(false);
  else if (event && first && first.getBoundingClientRect().top > -800 && !(event.deltaY > 0)) more(true);
};
addEventListener("scroll", near, { passive: true });
addEventListener("wheel", near, { passive: true });
viewer.querySelector("a[data-earlier]")?.addEventListener("click", (event) => {
  if (!parts().at(0)?.dataset.earlier) return;
  event.preventDefault();
  more(true);
});
addEventListener("resize", () => near(), { passive: true });

// Lines that are chosen: from `here` to `last`. The address leads to them, with script or without.
let last = Number(words.until) || here;
const says = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name].toLocaleString("en"));
const pick = (from, to) => {
  [here, last] = [Math.min(from, to), Math.max(from, to)];
  for (const row of pieces.querySelectorAll("li[id]")) {
    const number = Number(row.id.slice(1));
    row.classList.toggle("focus", number >= here && number <= last);
  }
  said.textContent = here === last ? says(words.at, { line: here, total }) : says(words.picked, { first: here, last });
  history.replaceState(null, "", `?${asked({ line: here === last ? here : `${here}-${last}` })}#L${here}`);
};
const copyLines = async () => {
  const given = { ...(words.file && { file: words.file }), line: `${here}-${last}` };
  const text = await fetch(`${words.raw}?${new URLSearchParams(given)}`).then((got) => (got.ok ? got.text() : null), () => null);
  if (text !== null) document.dispatchEvent(new CustomEvent("copying", { detail: text }));
  said.textContent = text === null ? words.broken : words.copied;
};
viewer.querySelector("#copy-lines").addEventListener("click", copyLines);

const chosen = (line) => {
  for (const old of pieces.querySelectorAll("li.focus")) old.classList.remove("focus");
  here = last = line;
  for (const input of viewer.querySelectorAll("#seek [name=line]")) input.value = line;
  viewer.querySelector(".map .here")?.setAttribute("x", Math.min((1000 * (line - 1)) / Math.max(total, 1), 997));
  const row = at(line);
  if (!row) return;
  row.closest("details")?.setAttribute("open", "");
  row.classList.add("focus");
  row.scrollIntoView({ block: "center" });
  row.querySelector("a").focus({ preventScroll: true });
  said.textContent = says(words.at, { line, total });
};
const go = async (line, fresh = false) => {
  looking += 1;
  if (fresh || !at(line)) {
    const piece = await fetched(`${words.piece}?${asked({ line })}`);
    if (!piece?.matches("ol.piece")) { said.textContent = words.broken; return; }
    pieces.replaceChildren(piece);
  }
  chosen(line);
  history.replaceState(null, "", `?${asked({ line })}#L${line}`);
  near();
};

// What the server says of an expression that it cannot use stands at the field.
const refused = viewer.querySelector("#refused");
const refuse = (text) => {
  refused.textContent = text;
  refused.hidden = !text;
  if (text) query.setAttribute("aria-invalid", "true"); else query.removeAttribute("aria-invalid");
  if (text) query.setAttribute("aria-describedby", "refused"); else query.removeAttribute("aria-describedby");
};
const broken = async (answer) => {
  const body = answer?.status === 400 ? await answer.text() : "";
  const page = body && new DOMParser().parseFromString(body, "text/html").querySelector(".sentence")?.textContent;
  let message = page || words.broken;
  try { message = JSON.parse(body).error.message; } catch { /* a page */ }
  refuse(answer?.status === 400 ? message : "");
  said.textContent = message;
};
const share = (looked, back) => words.looking.replace("{share}", Math.round((100 * (back ? total - looked : looked)) / Math.max(total, 1)));
const sought = () => `${query.value.trim()} ${regex.checked}`;
let marked = sought(); // what the lines on the page are marked with

// A search goes on at the other end of the log, and ends where it began.
const find = async (kind) => {
  const mine = looking += 1;
  const back = kind === "previous" || kind === "error-back";
  const [fresh, origin] = [sought() !== marked, here];
  let around = false;
  refuse("");
  for (let from = here; ;) {
    const answer = await fetch(`${words.find}?${asked({ go: kind, line: from })}`, { headers: { Accept: "application/json" } }).catch(() => null);
    if (mine !== looking) return;
    if (!answer?.ok) { await broken(answer); return; }
    const { line, looked, ended } = await answer.json();
    if (line !== null) {
      marked = sought();
      await go(line, fresh);
      if (around) said.append(` · ${back ? words.aroundBack : words.around}`);
      return;
    }
    if (around && (ended || (back ? looked < origin : looked > origin))) { said.textContent = words.nowhere; return; }
    if (ended) around = true;
    from = ended ? (back ? total + 1 : 0) : looked;
    said.textContent = share(looked, back);
  }
};

// All hits: a list above the lines, ticks on the strip, and how many there are.
const list = viewer.querySelector("#found");
const counted = viewer.querySelector("#hit-count");
const map = viewer.querySelector(".map");
const number = (value) => value.toLocaleString("en");
const MOST_HITS = 1000;
const closeHits = () => {
  looking += 1;
  list.hidden = true;
  for (const old of [...list.querySelectorAll(".hits, p"), ...(map?.querySelectorAll(".hit") ?? [])]) old.remove();
};
const tick = (line) => {
  if (!map) return;
  const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of [["class", "hit"], ["x", Math.min((1000 * (line - 1)) / Math.max(total, 1), 998)], ["width", 2], ["height", 10]]) mark.setAttribute(name, value);
  map.querySelector(".here").before(mark);
};
const findAll = async () => {
  closeHits();
  refuse("");
  const mine = looking;
  let [count, hits, whole] = [0, null, true]; // a look lists its first hits only: behind a hole in the list no more come
  for (let from = 1; ;) {
    const answer = await fetch(`${words.hits}?${asked({ from })}`, { headers: { Accept: "application/json" } }).catch(() => null);
    if (mine !== looking) return;
    if (!answer?.ok) { await broken(answer); return; }
    const more = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("ol.hits");
    const [found, listed] = [Number(more.dataset.count), more.children.length];
    count += found;
    for (const link of more.querySelectorAll("a")) tick(Number(link.dataset.line));
    if (hits === null) { hits = more; list.append(hits); } else if (whole && hits.children.length < MOST_HITS) hits.append(...more.children);
    whole &&= found === listed;
    const ended = Boolean(more.dataset.ended);
    list.hidden = count === 0;
    const shown = hits.children.length;
    counted.textContent = `${shown < count ? `${number(shown)} / ` : ""}${number(count)}${ended ? "" : "+"}`;
    if (ended) break;
    said.textContent = share(Number(more.dataset.looked), false);
    from = Number(more.dataset.looked) + 1;
  }
  said.textContent = count === 0 ? words.none : count === 1 ? words.one : words.count.replace("{count}", number(count));
};
list.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-line]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const fresh = sought() !== marked;
  marked = sought();
  go(Number(link.dataset.line), fresh);
});
viewer.querySelector("#close-hits").addEventListener("click", closeHits);

viewer.querySelector("#seek").addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter?.value === "all") findAll(); else find(event.submitter?.value || "next");
});
viewer.querySelector("#goto").addEventListener("submit", (event) => {
  const [line, rank] = ["line", "rank"].map((name) => event.target.elements[name].value.trim());
  if (rank !== words.rank || !/^\d+$/.test(line)) return; // another selection of lines is another page
  event.preventDefault();
  go(Math.min(Math.max(Number(line), 1), Math.max(total, 1)));
});
pieces.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#L']");
  if (!link) return;
  const line = Number(link.hash.slice(2));
  if (!event.shiftKey) { chosen(line); return; }
  event.preventDefault();
  getSelection()?.removeAllRanges();
  pick(here, line);
});

const mark = (by) => {
  const next = by > 0 ? marks.find((line) => line > here) : marks.findLast((line) => line < here);
  if (next) go(next);
};
const enter = (name) => {
  const field = viewer.querySelector(name);
  field.closest("details").open = true; // on a narrow screen it is folded
  field.select();
};
const KEYS = {
  j: () => mark(1), k: () => mark(-1), n: () => find("next"), N: () => find("previous"),
  e: () => find("error"), E: () => find("error-back"),
  J: () => pick(here, Math.min(last + 1, total)), K: () => pick(here, Math.max(last - 1, here)), c: copyLines,
  "/": () => query.select(), g: () => enter("#line"), r: () => enter("#rank"),
};
// Lines are broken or not, without a new page.
const wrap = viewer.querySelector("#wrap");
wrap.addEventListener("click", (event) => {
  event.preventDefault();
  const off = viewer.classList.toggle("unwrapped");
  words.wrap = off ? "0" : "";
  wrap.textContent = off ? wrap.dataset.on : wrap.dataset.off;
  const lines = here === last ? here : `${here}-${last}`;
  history.replaceState(null, "", `?${asked({ line: lines })}${location.hash}`);
  at(here)?.scrollIntoView({ block: "center" });
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) { // the focus goes back to the lines
    if (event.target.closest?.("#found")) closeHits();
    else if (!event.target.closest?.("input, select") && !list.hidden) closeHits();
    (at(here) ?? pieces.querySelector("li"))?.querySelector("a")?.focus({ preventScroll: true });
    return;
  }
  const typing = event.target.closest?.("input, textarea, select");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

if (pieces) {
  viewer.classList.add("flowing");
  const range = location.hash.match(/^#L(\d+)-L?(\d+)$/); // as other viewers write it
  if (range) go(Number(range[1])).then(() => pick(Number(range[1]), Number(range[2])));
  else if (/^#L\d+$/.test(location.hash) && at(location.hash.slice(2))) at(location.hash.slice(2)).scrollIntoView({ block: "center" });
  else if (new URLSearchParams(location.search).has("line")) at(here)?.scrollIntoView({ block: "center" });
  else if (!["from", "before"].some((name) => new URLSearchParams(location.search).has(name))) { // on a narrow screen the lines above it may fill the first view
    const evidence = pieces.querySelector("li.evidence");
    if (evidence && evidence.getBoundingClientRect().bottom > innerHeight - 80) evidence.scrollIntoView({ block: "center" });
  }
  if (words.until) said.textContent = says(words.picked, { first: here, last });
  near();
}
