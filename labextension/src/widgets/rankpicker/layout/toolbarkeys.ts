/**
 * Arrow keys inside the picker. JupyterLab's toolbar handles them, too, but
 * continues from where it believes the focus is, which a command may have moved.
 */

const CONTROLS = ['.jpd-TargetSelect select', '.jpd-RankChoice button', '.jpd-RankChoice input'].join(',');

/** Move the focus to the picker's next or previous control. */
export function moveInPicker(event: KeyboardEvent): void {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const target = event.target as HTMLElement;
  const toolbar = target.closest('.jp-Toolbar');
  if (!step || !toolbar || isInsideText(target, step)) {
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

/** Focus the picker. */
export function focusPicker(toolbar: HTMLElement): void {
  // The toolbar moves a focus from outside to its own first item.
  (document.activeElement as HTMLElement | null)?.blur();
  toolbar.querySelector<HTMLElement>(CONTROLS)?.focus();
}

/** Whether the cursor of a text field can still move that way. */
function isInsideText(target: HTMLElement, step: number): boolean {
  if (!(target instanceof HTMLInputElement)) {
    return false;
  }
  const { selectionStart: start, selectionEnd: end, value } = target;
  return step < 0 ? end !== 0 : start !== value.length;
}
