// Dragging cards with any pointer. A click stays a click until the pointer has gone a few pixels.

import { MOTION_MS } from "./dom.js";

const THRESHOLD = 6;

/**
 * Let cards inside `root` be dragged.
 * `start(source element)` says whether it may be; `over(key or null)` is told what lies below;
 * `drop(source element, target key or null, place of the card)` says whether the drop was taken.
 */
export function enableDrag(root, { start, over, drop }) {
  let held = null;

  const onmove = (event) => {
    if (!held || event.pointerId !== held.id) return;
    const x = event.clientX - held.x;
    const y = event.clientY - held.y;
    if (!held.ghost) {
      if (Math.hypot(x, y) < THRESHOLD) return;
      if (!start(held.element)) {
        end();
        return;
      }
      lift();
    }
    held.ghost.style.transform = `translate(${x}px, ${y}px) rotate(2deg)`;
    const target = below(event);
    if (target !== held.target) {
      held.target = target;
      over(target);
    }
  };

  const below = (event) => {
    for (const element of document.elementsFromPoint(event.clientX, event.clientY)) {
      const spot = element.closest("[data-target]");
      if (spot && root.contains(spot)) return spot.dataset.target;
    }
    return null;
  };

  const lift = () => {
    const card = top(held.element);
    const box = card.getBoundingClientRect();
    const ghost = card.cloneNode(true);
    ghost.classList.add("ghost");
    Object.assign(ghost.style, { left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px` });
    document.body.append(ghost);
    card.classList.add("lifted");
    held.ghost = ghost;
    held.card = card;
    held.element.setPointerCapture?.(held.id);
  };

  const finish = (event) => {
    if (!held || event.pointerId !== held.id) return;
    const { ghost, element } = held;
    if (ghost) {
      const target = event.type === "pointerup" ? below(event) : null;
      // The click that follows a drag is not meant as one.
      const swallow = (click) => { click.stopPropagation(); click.preventDefault(); };
      window.addEventListener("click", swallow, { capture: true, once: true });
      setTimeout(() => window.removeEventListener("click", swallow, { capture: true }), 0);
      const taken = drop(element, target, ghost.getBoundingClientRect());
      if (!taken && event.type === "pointerup") settle(ghost, held.card);
      else clear(ghost, held.card);
    }
    end();
  };

  const settle = (ghost, card) => {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      clear(ghost, card);
      return;
    }
    const back = ghost.animate([{ transform: ghost.style.transform }, { transform: "none" }], { duration: MOTION_MS, easing: "ease-out" });
    back.onfinish = () => clear(ghost, card);
  };

  const clear = (ghost, card) => {
    ghost.remove();
    card.classList.remove("lifted");
  };

  const end = () => {
    held = null;
    window.removeEventListener("pointermove", onmove);
    window.removeEventListener("pointerup", finish);
    window.removeEventListener("pointercancel", finish);
  };

  root.addEventListener("pointerdown", (event) => {
    const element = event.target.closest(".usable");
    if (!element || event.button !== 0 || held) return;
    held = { id: event.pointerId, element, x: event.clientX, y: event.clientY, ghost: null, target: null };
    window.addEventListener("pointermove", onmove);
    window.addEventListener("pointerup", finish);
    window.addEventListener("pointercancel", finish);
  });
}

/** The card that lies on top in a place. */
export function top(element) {
  return [...element.querySelectorAll(".card")].at(-1) ?? element;
}
