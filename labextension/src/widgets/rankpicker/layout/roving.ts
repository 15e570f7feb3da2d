/** A group of buttons that is one stop of the tab key: arrow keys move inside it. */
import type React from 'react';

const STEPS: Record<string, number> = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 };

/** Move the focus to the next or the previous button of the group that has the handler. */
export function moveFocus(event: React.KeyboardEvent<HTMLElement>): void {
  const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>('button:not(:disabled)')];
  const next = buttons[buttons.indexOf(event.target as HTMLElement) + (STEPS[event.key] ?? NaN)];
  if (next) {
    event.preventDefault();
    event.stopPropagation();
    next.focus();
  }
}
