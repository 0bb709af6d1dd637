// Countdowns. The server gives the milliseconds that are left, so the clock of this computer does not matter.

const known = new WeakMap();

export function start() {
  tick();
  setInterval(tick, 1000);
}

function tick() {
  for (const element of document.querySelectorAll("[data-countdown]")) {
    const given = element.dataset.countdown;
    let state = known.get(element);
    if (state?.given !== given) {
      state = { given, endsAt: performance.now() + Number(given) };
      known.set(element, state);
    }
    element.textContent = format(Math.max(0, Math.ceil((state.endsAt - performance.now()) / 1000)));
  }
}

function format(seconds) {
  const two = (count) => String(count).padStart(2, "0");
  const days = Math.floor(seconds / 86400);
  const text = `${Math.floor(seconds / 3600) % 24}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return days ? `${days} d ${text}` : text;
}
