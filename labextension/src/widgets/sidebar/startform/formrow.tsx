/** A row of the form: label, field, and its problem below. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useId, useLayoutEffect, useRef } from 'react';
import { MAX_NODES, MAX_RANKS, StartProblem } from '../../../model/groups/startvalues';
import { MAX_VARIABLES } from '../../../model/groups/wanted';
import { useSidebar } from '../context';

export interface IInputIds {
  readonly id: string;
  readonly 'aria-invalid': boolean;
  readonly 'aria-describedby': string | undefined;
}

interface IRowProps {
  readonly label: string;
  readonly problem: StartProblem | undefined;
  readonly note?: string;
  /** What the field means. */
  readonly help?: string;
  /** The server's description of the problem, if it has one. */
  readonly words?: string | null;
  /** All choices, with the reasons why some of them are disabled. */
  readonly unusable?: readonly IChoiceReason[];
  readonly children: (ids: IInputIds) => React.ReactElement;
}

export interface IChoiceReason {
  readonly label: string;
  /** Why it cannot be used here; null: it can. */
  readonly reason: string | null;
}

export function Row({ label, problem, note, help, words, unusable, children }: IRowProps): React.ReactElement {
  const id = useId();
  const described = problem || note ? `${id}-note` : undefined;
  const explained = help ? `${id}-help` : undefined;
  return (
    <div className="jpd-StartForm-row">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        'aria-invalid': problem !== undefined,
        'aria-describedby': [described, explained].filter(Boolean).join(' ') || undefined
      })}
      {note && !problem && (
        <p className="jpd-StartForm-note" id={described} title={note}>
          <bdi>{note}</bdi>
        </p>
      )}
      <Problem problem={problem} words={words} id={described} />
      {help && (
        <p className="jpd-StartForm-help" id={explained}>
          {help}
        </p>
      )}
      <Reasons choices={unusable ?? []} />
    </div>
  );
}

interface IFoldedProps {
  readonly title: string;
  /** Whether one of the fields has a value. */
  readonly isSet: boolean;
  readonly children: React.ReactNode;
}

/** Fields that few users need: unfolded by a value, such as a preset's, and folded by the user alone. */
export function Folded({ title, isSet, children }: IFoldedProps): React.ReactElement {
  const node = useRef<HTMLDetailsElement>(null);
  useLayoutEffect(() => {
    if (isSet) {
      node.current!.open = true;
    }
  }, [isSet]);
  return (
    <details ref={node} className="jpd-StartForm-more">
      <summary>{title}</summary>
      {children}
    </details>
  );
}

/** Why choices are disabled: a browser shows it nowhere else, and not at all to those who use no mouse. */
function Reasons({ choices }: { choices: readonly IChoiceReason[] }): React.ReactElement | null {
  const { trans } = useSidebar();
  const disabled = choices.filter(({ reason }) => reason !== null);
  return disabled.length === 0 ? null : (
    <details className="jpd-StartForm-reasons">
      <summary>{trans.__('%1 cannot be used here', disabled.length)}</summary>
      <ul>
        {disabled.map(({ label, reason }) => (
          <li key={label}>
            <b>{label}</b>: {reason}
          </li>
        ))}
      </ul>
    </details>
  );
}

interface INumberRowProps {
  readonly label: string;
  readonly problem: StartProblem | undefined;
  readonly max: number;
  readonly value: string;
  readonly change: (value: string) => void;
}

/** A row for a number from 1. */
export function NumberRow({ label, problem, max, value, change }: INumberRowProps): React.ReactElement {
  return (
    <Row label={label} problem={problem}>
      {id => (
        <input
          {...id}
          className="jp-mod-styled"
          type="number"
          min={1}
          max={max}
          value={value}
          onChange={event => change(event.target.value)}
        />
      )}
    </Row>
  );
}

interface IProblemProps {
  readonly problem?: StartProblem;
  readonly words?: string | null;
  readonly id?: string;
}

export function Problem({ problem, words, id }: IProblemProps): React.ReactElement | null {
  const { trans } = useSidebar();
  return problem ? (
    <p className="jpd-StartForm-problem" id={id}>
      {words ?? problemWords(trans, problem)}
    </p>
  ) : null;
}

function problemWords(trans: TranslationBundle, problem: StartProblem): string {
  const words: Record<StartProblem, string> = {
    'name-taken': trans.__('A group with this name already exists.'),
    'name-invalid': trans.__('A name starts with a letter, followed by letters, digits, "-", "_" and ".".'),
    'environment-missing': trans.__('Choose an environment.'),
    'environment-unusable': trans.__('No group can be started in this environment.'),
    'devices-none-present': trans.__('This machine has no such device.'),
    'devices-none-ticked': trans.__('Select at least one device.'),
    'ranks-invalid': trans.__('Enter a number from 1 to %1.', MAX_RANKS),
    'ranks-of-nodes-invalid': trans.__('Enter a number from 1 to %1, or one for each node: 4, 8.', MAX_RANKS),
    'nodes-invalid': trans.__('Enter a number from 1 to %1.', MAX_NODES),
    'launcher-unusable': trans.__('It cannot be used here.'),
    'launcher-unknown': trans.__('It is not known yet whether it can be used here.'),
    'variables-invalid': trans.__('Enter NAME=value, one in a line, at most %1.', MAX_VARIABLES),
    'option-invalid': trans.__('This cannot be used.'),
    'backend-not-here': trans.__('This accelerator does not use that backend; choose automatic.')
  };
  return words[problem];
}
