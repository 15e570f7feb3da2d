/**
 * Whether an element may take the focus after something that took time: the focus is in it, or nowhere because the
 * control that had it is gone. Anywhere else the user is already doing the next thing, and would type into this one.
 */
export function mayTakeFocus(node: HTMLElement): boolean {
  const { activeElement, body } = document;
  return activeElement === null || activeElement === body || node.contains(activeElement);
}

/** Whether an element is rendered: JupyterLab hides a tab by `display`, and from 4.7 on by `content-visibility`. */
export function isRendered(node: HTMLElement): boolean {
  // Browsers from before 2024, and the DOM of unit tests, do not have it.
  return node.checkVisibility?.() ?? node.offsetParent !== null;
}
