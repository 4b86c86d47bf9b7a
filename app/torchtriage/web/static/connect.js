// The light of "Connect your cluster": it turns on when the first report arrives, while one looks.
const light = document.querySelector("[data-light]");
const lamp = light?.querySelector(".lamp");
const look = async () => {
  if (document.visibilityState === "visible") {
    const answer = await fetch(`/connect/light?from=${light.dataset.light}`).catch(() => null);
    const state = answer?.ok ? await answer.json() : {};
    if (state.incident) {
      lamp.classList.add("on");
      const link = document.createElement("a");
      link.href = `/incidents/${state.incident}`;
      link.textContent = `#${state.incident}`;
      light.querySelector("span").replaceChildren(`${light.dataset.on} `, link, ` ${state.ago}`);
      return;
    }
  }
  setTimeout(look, 3000);
};
if (light && !lamp.classList.contains("on")) setTimeout(look, 3000);
