/** A section of the sidebar: a title that opens and closes it, and what is below. */
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

interface ISectionProps {
  readonly title: string;
  readonly button?: React.ReactElement;
  readonly children: React.ReactNode;
}

export function Section({ title, button, children }: ISectionProps): React.ReactElement {
  const [isOpen, setOpen] = useState(true);
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  return (
    <section className="jpd-Section" aria-label={title}>
      <header className="jpd-Section-header">
        <h2>
          <button type="button" className="jpd-Section-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <Caret.react tag="span" width="14px" />
            {title}
          </button>
        </h2>
        {button}
      </header>
      {isOpen && children}
    </section>
  );
}
