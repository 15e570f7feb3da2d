/** A button of a toolbar that opens a dialog below it. */
import { caretDownEmptyThinIcon } from '@jupyterlab/ui-components';
import React, { useEffect, useId, useRef, useState } from 'react';
import { Floating } from './floating';

interface IPopupButtonProps {
  className: string;
  /** What is on the button. */
  face: React.ReactNode;
  /** Its name for screen readers, and its tooltip. */
  label: string;
  title: string;
  /** Explains the button while it has the focus of the keyboard. */
  hint?: string;
  /** Other attributes of the button. */
  data?: Record<string, string | undefined>;
  /** The name of the dialog. */
  dialogLabel: string;
  /** What gets the focus when the dialog opens: the first of these selectors that finds something. */
  first: readonly string[];
  /** The content of the dialog. `close` closes it, and leaves the focus to what follows. */
  children(close: () => void, button: HTMLElement | null): React.ReactNode;
  /** Called on Escape. */
  leave(): void;
}

/** What the tab key stops at. */
const STOPS = 'button:not(:disabled):not([tabindex="-1"]), input';

export function PopupButton(props: IPopupButtonProps): React.ReactElement {
  const { className, face, label, title, hint, data } = props;
  const [isOpen, setOpen] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const isExplained = hint !== undefined && isFocused && !isOpen;
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.key === 'ArrowDown') {
      event.preventDefault();
      setOpen(true);
    }
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        aria-label={label}
        aria-describedby={isExplained ? id : undefined}
        title={title}
        {...data}
        onClick={event => {
          // A click that leaves the focus outside of the toolbar gives it to the notebook, and in JupyterLab 4.7 the panel has it by then.
          event.stopPropagation();
          setOpen(!isOpen);
        }}
        onKeyDown={onKeyDown}
        onFocus={event => setFocused(event.target.matches(':focus-visible'))}
        onBlur={() => setFocused(false)}
      >
        {face}
        <caretDownEmptyThinIcon.react tag="span" width="12px" />
      </button>
      {isExplained && (
        <Floating anchor={button}>
          <div id={id} className="jpd-Hint">
            {hint}
          </div>
        </Floating>
      )}
      {isOpen && <Popup {...props} anchor={button} onClose={() => setOpen(false)} />}
    </>
  );
}

interface IPopupProps extends Pick<IPopupButtonProps, 'dialogLabel' | 'first' | 'children' | 'leave'> {
  anchor: React.RefObject<HTMLButtonElement>;
  onClose(): void;
}

/** The dialog. It is at the end of the page, where Tab does not lead: it takes the focus, and keeps it. */
function Popup({ anchor, dialogLabel, first, children, leave, onClose }: IPopupProps): React.ReactElement {
  const dialog = useRef<HTMLDivElement>(null);
  const close = (): void => {
    const { activeElement } = document;
    if (dialog.current?.contains(activeElement)) {
      (activeElement as HTMLElement).blur(); // takes what was typed, before the field is gone
    }
    onClose();
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      onClose();
      leave();
    } else if (event.key === 'Tab') {
      keepInside(event, dialog.current!);
    }
  };
  useEffect(() => focusFirst(dialog.current, first), []);
  return (
    <Floating anchor={anchor} onClose={close}>
      <div ref={dialog} className="jpd-RankGrid" role="dialog" aria-label={dialogLabel} onKeyDown={onKeyDown}>
        {children(close, anchor.current)}
      </div>
    </Floating>
  );
}

function focusFirst(dialog: HTMLElement | null, selectors: readonly string[]): void {
  for (const selector of selectors) {
    const found = dialog?.querySelector<HTMLElement>(selector);
    if (found) {
      found.focus();
      return;
    }
  }
}

/** The tab key goes from the last control of the dialog to the first. */
function keepInside(event: React.KeyboardEvent, dialog: HTMLElement): void {
  const stops = [...dialog.querySelectorAll<HTMLElement>(STOPS)];
  const [from, to] = event.shiftKey ? [stops[0], stops[stops.length - 1]] : [stops[stops.length - 1], stops[0]];
  if (document.activeElement === from) {
    event.preventDefault();
    to?.focus();
  }
}
