// The scorekeeper: a score sheet for games at a real table, kept by the service.

import * as api from "./api.js";
import { alarm, announce, button, field, h, select } from "./dom.js";
import { sheetTable } from "./sheet.js";
import { load, save } from "./store.js";

const MOST = 6;

export async function open(main, id) {
  const root = h("section", { class: "panel start" });
  main.replaceChildren(root);
  if (id) await show(root, id);
  else begin(root);
  return null;
}

function explain(fault, retry) {
  if (fault.status === 0) alarm("The service does not answer.", [["Try again", retry]]);
  else if (fault.status === 404) alarm("There is no score sheet at this address.", [["New score sheet", () => { location.hash = "score"; }]]);
  else alarm(fault.message);
}

/** The form for a new sheet. */
function begin(root) {
  const last = load("score.last");
  const before = load("score.names", ["", ""]);
  const sides = select([2, 3, 4, 5, 6].map((n) => [n, `${n} players or teams`]), String(Math.max(2, before.length)));
  const target = h("input", { type: "number", min: 5, max: 100000, step: 5, value: 500, inputmode: "numeric" });
  const names = h("div", { class: "columns" });
  const fill = () => {
    const kept = [...names.querySelectorAll("input")].map((input) => input.value);
    names.replaceChildren(...Array.from({ length: Number(sides.value) }, (_, i) => field(`Name ${i + 1}`, h("input", { maxlength: 24, autocomplete: "off", value: kept[i] ?? before[i] ?? "" }))));
  };
  sides.addEventListener("change", fill);
  fill();
  const start = async (event) => {
    event.preventDefault();
    try {
      const match = await api.newMatch({ sides: Number(sides.value), target: Number(target.value) || 500 });
      const given = [...names.querySelectorAll("input")].map((input, i) => input.value.trim() || `Side ${i + 1}`);
      save(`score.${match.id}`, given);
      save("score.names", given);
      save("score.last", match.id);
      if (root.isConnected) location.hash = `score/${match.id}`;
    } catch (fault) {
      if (root.isConnected) explain(fault, () => start(event));
    }
  };
  root.replaceChildren(
    h("h1", { text: "Keep the score" }),
    h("p", { class: "lead", text: "For games at a real table: who went out gets 25 points and 5 for every stock card the others have left." }),
    last ? h("p", {}, h("a", { class: "button", href: `#score/${last}`, text: "Go on with the last sheet" })) : "",
    h("form", { class: "form", onsubmit: start }, h("div", { class: "columns" }, field("Who plays", sides), field("Points to win", target)), names, h("div", { class: "actions" }, h("button", { type: "submit", class: "primary" }, "Begin"))),
  );
}

/** A sheet with its games and the form for the next one. */
async function show(root, id) {
  let match;
  try {
    match = await api.loadMatch(id);
  } catch (fault) {
    if (root.isConnected) explain(fault, () => show(root, id));
    return;
  }
  if (!root.isConnected) return;
  save("score.last", id);
  draw(root, match);
}

function draw(root, match) {
  alarm(null);
  const stored = load(`score.${match.id}`, []);
  const names = Array.from({ length: Math.min(MOST, match.sides) }, (_, i) => stored[i] ?? `Side ${i + 1}`);
  const over = match.winner !== null;
  root.replaceChildren(
    h("h1", { text: over ? `${names[match.winner]} won the match` : "Keep the score" }),
    sheetTable(names, match.games.map((game) => game.scores), match.target, `To ${match.target} points. The address of this page is the sheet's: keep it to come back.`),
    over ? "" : entryForm(root, match, names),
    h("div", { class: "actions" }, match.games.length > 0 && button("Take the last game back", () => change(root, match, () => api.undoMatch(match.id, match.games.length), "The last game is taken back.")), h("a", { class: "button", href: "#score", text: "New sheet" })),
  );
}

function entryForm(root, match, names) {
  const winner = select([...names.map((name, i) => [i, name]), ["", "nobody"]], "0");
  const left = names.map((name, i) => h("input", { type: "number", min: 0, max: 80, inputmode: "numeric", value: i === 0 ? 0 : "", "data-side": i }));
  const points = h("p", { class: "note", "aria-live": "polite" });
  const errors = h("p", { class: "error-text", role: "alert" });
  const counts = () => left.map((input) => Number(input.value || 0));
  const refresh = () => {
    const side = winner.value === "" ? null : Number(winner.value);
    left.forEach((input, i) => {
      input.disabled = i === side;
      if (i === side) input.value = "0";
      else if (input.value === "0") input.value = "";
    });
    const filled = left.every((input) => input.value !== "" && Number.isInteger(Number(input.value)));
    const sum = counts().reduce((total, n, i) => total + (i === side ? 0 : n), 0);
    points.textContent = side === null ? "Nobody scores." : filled ? `${names[side]}: 25 + 5 × ${sum} = ${25 + 5 * sum} points.` : "Enter the cards left in each stock.";
  };
  [winner, ...left].forEach((control) => control.addEventListener("input", refresh));
  refresh();
  const add = async (event) => {
    event.preventDefault();
    const side = winner.value === "" ? null : Number(winner.value);
    const missing = side !== null && left.find((input) => input.value === "");
    if (missing) {
      errors.textContent = "Enter the cards left in each stock.";
      missing.focus();
      return;
    }
    const body = { winner: side, index: match.games.length, ...(side === null ? {} : { left: counts() }) };
    await change(root, match, () => api.addToMatch(match.id, body), side === null ? "Entered. Nobody scores." : `Entered. ${points.textContent}`, (fault) => {
      errors.textContent = fault.message;
      const at = /\/left\/(\d+)/.exec(fault.problem.pointer ?? "");
      if (at) left[Number(at[1])]?.focus();
    });
  };
  return h(
    "form",
    { class: "form", onsubmit: add, novalidate: true },
    h("fieldset", {}, h("legend", { text: `Game ${match.games.length + 1}` }), h("div", { class: "columns" }, field("Who went out", winner), left.map((input, i) => field(`${names[i]}, cards left`, input))), points),
    errors,
    h("div", { class: "actions" }, h("button", { type: "submit", class: "primary" }, "Enter this game")),
  );
}

/** Change the sheet on the service, then draw what it answers. */
async function change(root, match, work, told, refused = null) {
  try {
    const changed = await work();
    if (!root.isConnected) return;
    draw(root, changed);
    announce(told);
    root.querySelector("form select, .actions a")?.focus();
  } catch (fault) {
    if (!root.isConnected) return;
    if (fault.status === 409 && fault.problem.current) {
      draw(root, fault.problem.current);
      announce("The sheet has changed since; here is how it stands.");
    } else if (fault.status === 422 && refused) refused(fault);
    else explain(fault, () => change(root, match, work, told, refused));
  }
}
