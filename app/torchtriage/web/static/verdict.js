// Hands a log in, waits for its verdict and shows it in the same view; what was dropped may be files or folders.

const form = document.querySelector("form#paste");
let path = location.pathname; // of what is shown
const parsed = (text) => new DOMParser().parseFromString(text, "text/html");
const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

// An incident that is being triaged: ask now and then, until there is an answer.
const ended = async (address) => {
  for (let wait = 300; ; wait = Math.min(wait * 1.3, 3000)) {
    await pause(wait);
    const answer = await fetch(`/api/v1${new URL(address, location).pathname}`).catch(() => null);
    const state = answer?.ok ? (await answer.json()).state : "";
    if (state === "triaged" || state === "failed") return;
  }
};

const shown = (page, address) => {
  const main = document.querySelector("main");
  const fresh = [...page.querySelector("main").children];
  if (form) {
    const again = document.createElement("details");
    again.className = "again fold";
    const summary = document.createElement("summary");
    summary.textContent = form.dataset.another;
    again.append(summary, form);
    fresh.unshift(again);
  }
  main.replaceChildren(...fresh);
  for (const part of page.querySelectorAll("head link[rel=stylesheet], head script[src]")) { // of that page alone
    const known = part.href ? `link[href="${part.getAttribute("href")}"]` : `script[src="${part.getAttribute("src")}"]`;
    if (document.head.querySelector(known)) continue;
    const own = document.createElement(part.localName);
    for (const { name, value } of part.attributes) own.setAttribute(name, value);
    document.head.append(own);
  }
  document.querySelector(".top nav").replaceWith(page.querySelector(".top nav"));
  document.title = page.title;
  if (address !== location.href) history.pushState(null, "", address);
  path = location.pathname;
  document.dispatchEvent(new Event("fresh"));
  scrollTo(0, 0);
  const heading = main.querySelector("h1");
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
};
const open = async (address) => {
  const text = await fetch(address).then((got) => got.text(), () => null);
  if (text === null) location.assign(address);
  else shown(parsed(text), address);
};
// Back and forth between the form and verdicts; a place within the page is no other page.
addEventListener("popstate", () => { if (location.pathname !== path) location.reload(); });

if (document.querySelector("[data-wait]")) ended(location.href).then(() => open(location.href));

if (form) {
  const words = form.dataset;
  const problem = form.querySelector("#problem");
  const bar = form.querySelector("#progress progress");
  const said = form.querySelector("#progress span");
  const stop = form.querySelector("#stop");
  const button = form.querySelector("button[type=submit]");
  const chosen = form.querySelector("#chosen");
  const inputs = [...form.querySelectorAll("input[type=file]")];

  const say = (text) => {
    problem.textContent = text;
    problem.hidden = !text;
  };
  const end = (text) => {
    bar.hidden = stop.hidden = true;
    said.textContent = "";
    button.disabled = false;
    form.removeAttribute("aria-busy");
    say(text);
  };

  // What is no log in a folder of a run: weights, arrays, pictures, code's caches.
  const noLog = /\.(pt|pth|ckpt|safetensors|bin|npy|npz|pkl|h5|onnx|parquet|arrow|png|jpe?g|gif|pdf|pyc|so|tfevents.*)$|tfevents|(^|\/)\.(git|DS_Store)/i;
  const left = (files) => files.filter(([path, file]) => file.size > 0 && !noLog.test(path));
  const size = (bytes) => {
    const units = ["B", "kB", "MB", "GB"];
    const at = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 3);
    return `${(bytes / 1000 ** at).toFixed(at ? 1 : 0)} ${units[at]}`;
  };
  const total = (files) => files.reduce((sum, [, file]) => sum + file.size, 0);
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const says = (files, all) => filled(all > files.length ? words.chosenLess : words.chosen, {
    count: files.length, size: size(total(files)), less: all - files.length,
  });

  const send = (data) => {
    say("");
    const request = new XMLHttpRequest();
    const began = performance.now();
    request.open("POST", "/");
    request.setRequestHeader("Accept", "application/json");
    request.upload.addEventListener("progress", ({ lengthComputable, loaded, total: all }) => {
      if (!lengthComputable) return;
      bar.hidden = false;
      bar.value = loaded / all;
      const seconds = (performance.now() - began) / 1000;
      const rest = Math.ceil((all - loaded) / (loaded / seconds));
      if (loaded >= all) said.textContent = words.reading;
      else said.textContent = filled(words.uploading, {
        share: Math.floor((100 * loaded) / all), done: size(loaded), size: size(all), rest: Number.isFinite(rest) ? rest : "…",
      });
    });
    request.addEventListener("load", async () => {
      stop.hidden = true;
      if (request.status >= 300) {
        let message = words.broken;
        try {
          message = JSON.parse(request.responseText).error.message;
        } catch { /* an answer that a proxy gave */ }
        end(message);
        return;
      }
      const address = request.responseURL;
      const page = parsed(request.responseText);
      bar.removeAttribute("value");
      bar.hidden = false;
      said.textContent = words.waiting;
      if (page.querySelector("[data-wait]")) {
        await ended(address);
        await open(address);
      } else shown(page, address);
      end("");
      form.reset();
      chosen.textContent = "";
    });
    request.addEventListener("error", () => end(words.broken));
    request.addEventListener("abort", () => end(words.stopped));
    stop.onclick = () => request.abort();
    button.disabled = true;
    stop.hidden = false;
    form.setAttribute("aria-busy", "true");
    bar.value = 0;
    said.textContent = words.reading;
    request.send(data);
  };
  const sendFiles = (files, data = new FormData()) => {
    for (const [path, file] of left(files)) data.append("log", file, path);
    if ([...data.keys()].length) send(data);
    else say(files.length ? words.noLogs : words.nothing);
  };

  const picked = () => inputs.flatMap((input) => [...input.files].map((file) => [file.webkitRelativePath || file.name, file]));
  for (const input of inputs) input.addEventListener("change", () => {
    const files = picked();
    chosen.textContent = files.length ? says(left(files), files.length) : "";
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const data = new FormData();
    const pasted = form.querySelector("#pasted").value;
    if (pasted.trim()) data.append("pasted", pasted);
    sendFiles(picked(), data);
  });
  addEventListener("pageshow", () => end(problem.textContent));

  // What is pasted outside of a field goes into the box; files are handed in.
  const box = form.querySelector("#pasted");
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || button.disabled) return;
    event.preventDefault();
    form.requestSubmit(button);
  });
  document.addEventListener("paste", (event) => {
    const field = event.target.closest?.("input, textarea, select, [contenteditable]");
    const files = [...event.clipboardData.files];
    const text = event.clipboardData.getData("text/plain");
    if ((field && field !== box) || (!files.length && (field || !text))) return;
    event.preventDefault();
    form.closest("details")?.setAttribute("open", "");
    if (files.length) { sendFiles(files.map((file) => [file.name, file])); return; }
    box.value = text;
    box.focus();
  });

  const within = async (entry, path = "") => {
    if (entry.isFile) {
      const file = await new Promise((done, failed) => { entry.file(done, failed); });
      return [[path + file.name, file]];
    }
    const reader = entry.createReader();
    const found = [];
    for (;;) { // a reader gives a hundred at a time
      const some = await new Promise((done, failed) => { reader.readEntries(done, failed); });
      if (!some.length) break;
      found.push(...some);
    }
    return (await Promise.all(found.map((one) => within(one, `${path}${entry.name}/`)))).flat();
  };
  const dropped = async (transfer) => {
    const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const plain = [...transfer.files].map((file) => [file.name, file]);
    return entries.some((entry) => entry.isDirectory)
      ? (await Promise.all(entries.map((entry) => within(entry)))).flat() : plain;
  };

  // Enter and leave come for every element on the way, so they are counted.
  let inside = 0;
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  const show = () => document.body.classList.toggle("dropping", inside > 0);
  document.addEventListener("dragenter", (event) => { if (holdsFiles(event)) { inside += 1; show(); } });
  document.addEventListener("dragleave", (event) => { if (holdsFiles(event)) { inside -= 1; show(); } });
  document.addEventListener("dragover", (event) => { if (holdsFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", async (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    inside = 0;
    show();
    sendFiles(await dropped(event.dataTransfer).catch(() => []));
  });
}
