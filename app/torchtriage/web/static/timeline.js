// The incident's timeline with script: a line under the pointer that tells, a stretch that is drawn or chosen by keys and
// narrows the list of events. What it says stands in the page already.

const WIDTH = 1000;

const made = (tag, name, text = "") => {
  const part = document.createElement(tag);
  part.className = name;
  part.textContent = text;
  return part;
};
const two = (number) => String(number).padStart(2, "0");

const start = (timeline) => {
  const words = timeline.dataset;
  const knots = JSON.parse(words.knots);
  const picture = timeline.querySelector(".tl");
  const rows = [...timeline.querySelectorAll(".tl-events li")];
  const events = rows.filter((row) => row.dataset.at !== "");
  const points = [...timeline.querySelectorAll(".tl-points tbody tr")];
  const names = [...timeline.querySelectorAll(".tl-points thead th")].map((head) => head.textContent);
  const chosen = timeline.querySelector(".tl-chosen");
  const count = timeline.querySelector("[data-count]");
  const over = made("div", "tl-over");
  const hair = made("div", "tl-hair");
  const brush = made("div", "tl-brush");
  const tip = made("div", "tl-tip");
  over.append(brush, hair, tip);
  hair.hidden = brush.hidden = tip.hidden = true;
  picture.append(over);
  picture.tabIndex = 0;
  picture.setAttribute("role", "group");
  picture.setAttribute("aria-label", words.help);
  const spoken = made("p", "unseen");
  spoken.setAttribute("aria-live", "polite");
  timeline.append(spoken);

  const at = (part) => Number(part.dataset.at);
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const line = (number) => filled(words.line, { line: number });
  // What time, or which line, stands at a place: between the knots it grows evenly.
  const valueAt = (place) => {
    for (let n = 1; n < knots.length; n += 1) {
      const [[low, begin], [high, end]] = [knots[n - 1], knots[n]];
      if (place <= end) return low + ((high - low) * Math.max(place - begin, 0)) / (end - begin || 1);
    }
    return knots.at(-1)[0];
  };
  const clock = (place) => {
    if (!words.timed) return line(Math.round(valueAt(place)));
    const when = new Date(valueAt(place) * 1000);
    const get = words.zoned ? "get" : "getUTC"; // a clock of an unknown zone is shown as it is
    const day = `${two(when[`${get}Month`]() + 1)}-${two(when[`${get}Date`]())}`;
    return `${day} ${["Hours", "Minutes", "Seconds"].map((part) => two(when[get + part]())).join(":")}`;
  };
  const nearest = (parts, place, within) => {
    const near = parts.reduce((best, part) => (!best || Math.abs(at(part) - place) < Math.abs(at(best) - place) ? part : best), null);
    return near && Math.abs(at(near) - place) <= within ? near : null;
  };
  const values = (point) => [...point.cells].map((cell, n) => (n > 1 && cell.textContent !== "–" ? `${names[n]} ${cell.textContent}` : "")).filter(Boolean).join(" · ");
  const whole = (row) => [row.querySelector(".at"), row.querySelector(".what")].map((part) => part.textContent.trim().replace(/\s+/g, " ")).filter(Boolean).join(" · ");

  const mark = (row) => {
    for (const old of timeline.querySelectorAll(".here")) old.classList.remove("here");
    if (!row) return;
    row.classList.add("here");
    for (const sign of picture.querySelectorAll(`[data-event="${row.dataset.event}"]`)) sign.classList.add("here");
  };
  const show = (place, row) => {
    const point = nearest(points, place, 40);
    tip.replaceChildren(made("b", "", clock(place)));
    if (point) tip.append(made("span", "", values(point)));
    if (row) tip.append(made("span", "", whole(row)));
    hair.hidden = tip.hidden = false;
    hair.style.left = `${place / 10}%`;
    tip.style.left = place < WIDTH / 2 ? `${place / 10}%` : "auto";
    tip.style.right = place < WIDTH / 2 ? "auto" : `${100 - place / 10}%`;
    mark(row);
  };
  const hide = () => {
    hair.hidden = tip.hidden = true;
    mark(null);
  };

  // The stretch that is chosen: the list shows what happened in it, and a link leads to its lines.
  let [from, to] = [null, null];
  const lines = (parts) => parts.filter((part) => part.dataset.file === undefined || part.dataset.file === words.file)
    .map((part) => Number(part.dataset.line ?? part.querySelector("a").textContent)).filter(Boolean);
  const choose = (first, last) => {
    [from, to] = [first, last];
    const all = first === null;
    const inside = (part) => all || (part.dataset.at !== "" && at(part) >= Math.min(first, last) && at(part) <= Math.max(first, last));
    for (const row of rows) row.hidden = !inside(row);
    const shown = rows.filter((row) => !row.hidden);
    count.textContent = shown.length;
    brush.hidden = all;
    chosen.replaceChildren();
    if (all) return;
    const [low, high] = [Math.min(first, last), Math.max(first, last)];
    brush.style.left = `${low / 10}%`;
    brush.style.width = `${(high - low) / 10}%`;
    chosen.append(made("span", "", filled(words.chosen, { first: clock(low), last: clock(high), count: shown.length })));
    const numbers = lines([...shown, ...points.filter(inside)]);
    if (numbers.length) {
      const [begin, end] = [Math.min(...numbers), Math.max(...numbers)];
      const link = made("a", "", filled(words.lines, { first: begin, last: end }));
      link.href = `${words.log}?${new URLSearchParams({ ...(words.file && { file: words.file }), line: `${begin}-${end}` })}#L${begin}`;
      chosen.append(link);
    }
    const clear = made("button", "", words.clear);
    clear.type = "button";
    clear.addEventListener("click", () => { choose(null, null); picture.focus(); });
    chosen.append(clear);
  };

  const place = (event) => {
    const { left, width } = over.getBoundingClientRect();
    return Math.min(Math.max(((event.clientX - left) / width) * WIDTH, 0), WIDTH);
  };
  let pressed = null;
  let dragged = false;
  picture.addEventListener("pointerdown", (event) => {
    const { left } = over.getBoundingClientRect();
    if (event.button || event.clientX < left - 8 || event.pointerType === "touch") return;
    pressed = place(event);
    dragged = false;
  });
  picture.addEventListener("pointermove", (event) => {
    const here = place(event);
    const { left, right } = over.getBoundingClientRect();
    if (pressed !== null && (dragged || Math.abs(here - pressed) > 8)) {
      if (!dragged) picture.setPointerCapture(event.pointerId);
      dragged = true;
      picture.classList.add("brushing");
      choose(pressed, here);
    }
    if (event.clientX < left - 8 || event.clientX > right + 8) { hide(); return; }
    const pointed = event.target.closest?.("[data-event]")?.dataset.event;
    show(here, pointed === undefined ? nearest(events, here, 8) : rows[Number(pointed)]);
  });
  const released = () => {
    picture.classList.remove("brushing");
    pressed = null;
  };
  picture.addEventListener("pointerup", released);
  picture.addEventListener("pointercancel", released);
  picture.addEventListener("pointerleave", () => { if (pressed === null) hide(); });
  picture.addEventListener("dragstart", (event) => event.preventDefault()); // a link is no thing to carry off here
  picture.addEventListener("click", (event) => { // a stretch that was drawn over a sign does not open its line
    if (dragged) event.preventDefault();
    dragged = false;
  }, true);

  let on = -1;
  const step = (by, wide) => {
    const begin = from ?? (on >= 0 ? at(events[on]) : null);
    on = Math.min(Math.max(on + by, 0), events.length - 1);
    const row = events[on];
    if (wide) choose(begin ?? at(row), at(row));
    show(at(row), row);
    row.scrollIntoView({ block: "nearest" });
    spoken.textContent = whole(row);
  };
  picture.addEventListener("keydown", (event) => {
    if (event.target !== picture || event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -events.length, End: events.length };
    if (Object.hasOwn(moves, event.key) && events.length) step(moves[event.key], event.shiftKey);
    else if (event.key === "Enter" && on >= 0) events[on].querySelector("a.n")?.click();
    else if (event.key === "Escape") { choose(null, null); hide(); } else return;
    event.preventDefault();
  });
  picture.addEventListener("blur", hide);
  for (const row of rows) {
    row.addEventListener("pointerenter", () => { if (row.dataset.at !== "") show(at(row), row); });
    row.addEventListener("pointerleave", hide);
  }
};

const fresh = () => {
  const timeline = document.querySelector("#timeline:not([data-ready])");
  if (!timeline) return;
  timeline.dataset.ready = "1";
  start(timeline);
};
fresh();
document.addEventListener("fresh", fresh);
