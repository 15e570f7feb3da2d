/**
 * Arrow keys inside the picker. JupyterLab's toolbar handles them, too, but
 * continues from where it believes the focus is, which a command may have moved.
 */
import type { Widget } from '@lumino/widgets';

const CONTROLS = ['.jpd-RankPicker button', '.jpd-RankChoice button'].join(',');
/** The button of the toolbar's menu, which has the items without room. */
const MORE = '.jp-Toolbar-responsive-opener button, .jp-Toolbar-responsive-opener jp-button';

/** Move the focus to the picker's next or previous control. */
export function moveInPicker(event: KeyboardEvent): void {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const target = event.target as HTMLElement;
  const toolbar = target.closest('.jp-Toolbar');
  if (!step || !toolbar) {
    return;
  }
  const controls = [...toolbar.querySelectorAll<HTMLElement>(CONTROLS)];
  const next = controls[controls.indexOf(target) + step];
  // At either end the toolbar takes over.
  if (next) {
    event.preventDefault();
    event.stopPropagation();
    next.focus();
  }
}

/** Focus the picker; if it is in the toolbar's menu, open that first. */
export function focusPicker(toolbar: HTMLElement, picker: Widget): void {
  if (!picker.isVisible) {
    toolbar.querySelector<HTMLElement>(MORE)?.click();
  }
  // The toolbar moves a focus from outside to its own first item.
  (document.activeElement as HTMLElement | null)?.blur();
  picker.node.querySelector('button')?.focus();
}
