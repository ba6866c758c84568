// The match: games against the same company, added up to the target. It is kept in this browser.

import { h } from "./dom.js";
import { load, save } from "./store.js";

/** The match being played, or null. */
export const current = () => load("match");

/** Begin a match with the request that made its first game. */
export function begin(request, first, target, id) {
  save("match", { target, request, first, games: [{ id, scores: null }], sides: null });
}

export const forget = () => save("match", null);

/** Whether a game belongs to the match. */
export const has = (match, id) => Boolean(match?.games.some((game) => game.id === id));

export function totals(match) {
  const sides = match.sides?.length ?? 0;
  return Array.from({ length: sides }, (_, side) => match.games.reduce((sum, game) => sum + (game.scores?.[side] ?? 0), 0));
}

/** The side that has reached the target, or null. */
export function winner(match) {
  const side = totals(match).findIndex((points) => points >= match.target);
  return side < 0 ? null : side;
}

/** Enter a game that is over; entering it again changes nothing. */
export function enter(id, result, sides) {
  const match = current();
  const game = match?.games.find((entry) => entry.id === id);
  if (!game || game.scores) return;
  game.scores = result.scores;
  game.reason = result.reason;
  match.sides = sides;
  save("match", match);
}

/** The request for the next game: the seat that begins moves on, as docs/rules.md says. */
export function nextRequest(match) {
  const { rules } = match.request;
  return { ...match.request, rules: { ...rules, first_player: (match.first + match.games.length) % rules.players } };
}

export function addGame(id) {
  const match = current();
  match.games.push({ id, scores: null });
  save("match", match);
}

/** The score sheet as a table; `rows` are lists of points, one a side. */
export function sheetTable(sides, rows, target, caption) {
  const sums = sides.map((_, side) => rows.reduce((sum, scores) => sum + (scores?.[side] ?? 0), 0));
  return h(
    "table",
    { class: "sheet-table" },
    h("caption", { text: caption }),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "Game" }), sides.map((name) => h("th", { scope: "col", text: name })))),
    h("tbody", {}, rows.map((scores, i) => h("tr", {}, h("th", { scope: "row", text: i + 1 }), sides.map((_, side) => h("td", { class: scores?.[side] ? "won" : "", text: scores ? scores[side] : "–" }))))),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row", text: "Total" }), sums.map((points) => {
      const cell = h("td", {}, h("b", { text: points }), h("span", { class: "meter", "aria-hidden": "true" }, h("span", { class: "fill" })));
      cell.querySelector(".fill").style.setProperty("--p", String(Math.min(1, points / target)));
      return cell;
    }))),
  );
}
