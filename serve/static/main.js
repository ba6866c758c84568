// The page: which view the address asks for, and the settings.
//   #            a new game        #game/ID    a game, to go on with
//   #ask         a real table      #score/ID   the scorekeeper        #review/ID  a game looked back on

import { alarm, button, h, newId, openDialog } from "./dom.js";
import { startView } from "./newgame.js";
import { Play } from "./play.js";
import { changeSetting, settings } from "./store.js";

const main = document.getElementById("main");
let view = null;

let visits = 0; // how often the address has changed: what arrives late for an earlier one is dropped

/** Views that few visits need are fetched when they are. */
const LATER = ["ask", "score", "review"];

/** A view's module; a browser remembers one that it could not fetch, so each new try has a name of its own. */
async function fetched(name) {
  try {
    return await import(`./${name}.js`);
  } catch {
    return import(`./${name}.js?visit=${visits}`);
  }
}

/** What stands behind the page's name in the address; as it is, where it is no proper escape. */
function idOf(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function route() {
  const visit = (visits += 1);
  const [page, ...rest] = location.hash.slice(1).split("/");
  const id = idOf(rest.join("/"));
  view?.leave?.();
  view = null;
  alarm(null);
  const name = LATER.includes(page) ? page : "play";
  document.querySelectorAll("nav a").forEach((link) => {
    if (link.dataset.page === (name === "review" ? "play" : name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  if (name !== "play") {
    let module;
    try {
      module = await fetched(name);
    } catch {
      if (visit !== visits) return;
      main.replaceChildren();
      alarm("The service does not answer.", [["Try again", route]]);
      return;
    }
    if (visit !== visits) return;
    const opened = await module.open(main, id);
    if (visit === visits) view = opened;
    else opened?.leave?.();
  } else if (page === "game" && id) {
    view = new Play(main, id);
    await view.load();
  } else {
    await startView(main);
  }
}

function openSettings() {
  const check = (label, checked, onchange) => {
    const input = h("input", { type: "checkbox", id: newId("setting"), checked, onchange: () => onchange(input.checked) });
    return h("div", { class: "check" }, input, h("label", { for: input.id, text: label }));
  };
  openDialog(
    "Settings",
    h(
      "div",
      { class: "form" },
      check("Playing-card names: A, J, Q, and K for a wild", settings.names === "playing", (on) => changeSetting("names", on ? "playing" : "numbers")),
      check("Shortcut keys", settings.letters, (on) => changeSetting("letters", on)),
      h("dl", { class: "keys" }, [
        ["Tab, arrows", "go from card to card"],
        ["Enter", "select a card, put it where you are"],
        ["1 to 4", "put the selected card on a building pile; with Shift on a discard pile"],
        ["S", "select the stock's top card"],
        ["H, U, P, N", "hint, undo, pass, new game"],
        ["Escape", "select nothing"],
      ].map(([key, text]) => [h("dt", { text: key }), h("dd", { text })])),
      h("div", { class: "actions" }, button("Done", () => document.getElementById("dialog").close(), { class: "primary" })),
    ),
    { onclose: () => view?.redrawAll?.() },
  );
}

document.getElementById("settings-open").addEventListener("click", openSettings);
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", route);
route();
