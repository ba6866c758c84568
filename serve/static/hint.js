// A suggestion of the API as a ranked list: bars, numbers, reasons and the rest of the turn.

import { called, count, listed, moveText } from "./cards.js";
import { button, h } from "./dom.js";

const VERDICTS = {
  best: "best",
  tie: "as good",
  inaccuracy: "a little worse",
  mistake: "a mistake",
  blunder: "a blunder",
};

const METHODS = { turn: "which searches the whole turn", search: "which plays games out", policy: "at a glance" };

/** A probability as text. */
export function percent(p, digits = 1) {
  return `${(100 * p).toFixed(digits)}%`;
}

function ending(move) {
  switch (move.line_ends) {
    case "win": return "wins the game";
    case "stock_flip": return "turns up the next stock card";
    case "refill": return "empties the hand, so that new cards come at once";
    case "pass": return "then nothing can be done but pass";
    default: return null;
  }
}

/** Why a move is what it is, from the turn it begins. */
export function reasons(move) {
  const plays = move.line.filter((step) => step.move.type === "play");
  const stock = plays.filter((step) => step.move.from === "stock").length;
  const wilds = plays.filter((step) => step.move.card === "S").length;
  const freed = plays.filter((step) => step.move.from?.startsWith("discard")).length;
  const told = [];
  if (stock) told.push(`gets ${stock === 1 ? "a stock card" : `${stock} stock cards`} away`);
  if (freed) told.push(`uses ${count(freed, "discarded card")}`);
  if (wilds) told.push(`spends ${wilds === 1 ? "a wild" : `${wilds} wilds`}`);
  const end = ending(move);
  if (end) told.push(end);
  const last = move.line.at(-1)?.move;
  if (last?.type === "discard") {
    told.push(plays.length ? `keeps ${called(last.card)} for the discard` : last.card === "S" ? "gives a wild away" : "keeps the other cards in hand");
  }
  return told.length ? `${listed(told)}.` : "";
}

function row(move, own, onplay) {
  const estimated = move.win !== null && move.win !== undefined;
  const bar = h("span", { class: "meter", "aria-hidden": "true" }, h("span", { class: "fill" }));
  if (estimated) bar.firstChild.style.setProperty("--p", String(move.win));
  const rest = move.line.slice(1);
  const lost = move.order === 0 || !(move.delta <= -0.0005) ? "" : ` (${(100 * move.delta).toFixed(1)} points)`.replace("-", "−");
  const text = moveText(move.move, own);
  const why = reasons(move);
  return h(
    "li",
    { class: move.order === 0 ? "best" : "" },
    h(
      "div",
      { class: "text" },
      h(
        "div",
        { class: "head" },
        h("strong", { text: text.charAt(0).toUpperCase() + text.slice(1) }),
        move.verdict && h("span", { class: `verdict ${move.verdict}`, text: `${VERDICTS[move.verdict]}${lost}` }),
      ),
      estimated && h("div", { class: "odds" }, bar, h("span", { class: "number", text: percent(move.win) }), move.win_se ? h("span", { class: "error", text: `± ${percent(2 * move.win_se)}` }) : null),
    ),
    onplay && button("Play", () => onplay(move), { class: "small", "data-key": `hint:${move.action}`, "aria-label": `Play ${text}` }),
    rest.length > 0 && h("p", { class: "line" }, "then ", rest.map((step) => moveText(step.move, own)).join("; ")),
    move.order === 0 && why && h("p", { class: "why", text: why.charAt(0).toUpperCase() + why.slice(1) }),
  );
}

/** The panel's content for an answer of /v1/suggest or of a game's hint. */
export function suggestionElements(answer, { own = null, side = 0, shown = 5, onplay = null } = {}) {
  const moves = answer.moves.filter((move) => move.same_as === null || move.same_as === undefined).slice(0, shown);
  const win = answer.root?.win?.[side];
  const { agent } = answer;
  const by = `${agent.name}${METHODS[agent.method] ? `, ${METHODS[agent.method]}` : ""}`;
  return [
    h("p", { class: "by" }, win === null || win === undefined ? `Chosen by ${by}. It gives no probabilities.` : `Your chance to win: ${percent(win)}, by ${by}.`),
    h("ol", { class: "moves" }, moves.map((move) => row(move, own, onplay))),
    (answer.warnings ?? []).map((text) => h("p", { class: "note", text })),
  ];
}

/** The best move as one sentence. */
export function bestText(answer, own = null) {
  const [best] = answer.moves;
  const odds = best.win === null || best.win === undefined ? "" : `, ${percent(best.win)} to win`;
  return `Best: ${moveText(best.move, own)}${odds}.`;
}
