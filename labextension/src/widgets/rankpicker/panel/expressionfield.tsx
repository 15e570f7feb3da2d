/** The text field for a rank expression, checked while the user types. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useEffect, useId, useRef, useState } from 'react';
import { parseRanks, withNodes } from '../../../model/format/ranks';
import { completeNodes } from '../../../model/groups/nodes';
import type { DistError } from '../../../services/errors';
import type { IGroup, INode } from '../../../services/protocol';
import { Floating } from '../layout/floating';

interface IExpressionFieldProps {
  value: string;
  group: IGroup | null;
  trans: TranslationBundle;
  /** The value that the next draw will have. */
  current(): string;
  /** Called when the user begins to type; the result takes what was entered, for what is active now. */
  onEdit(): (expression: string) => void;
}

export function ExpressionField(props: IExpressionFieldProps): React.ReactElement {
  const { value, group, trans } = props;
  const { text, type, isNews, enter, reset } = useText(props);
  const [isFocused, setFocused] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const nodes = group?.nodes ?? [];
  const expression = withNodes(text, nodes);
  const error = check(expression, group);
  const hint = hintFor(trans, nodes.length > 0);
  const commit = (): void => {
    if (!error && isNews(expression)) {
      enter(expression);
    }
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.key === 'Escape' && text === value) {
      return; // closes the popup that the field is in
    }
    event.stopPropagation();
    if (event.key === 'Enter') {
      commit();
    } else if (event.key === 'Escape') {
      reset();
    }
  };
  const onBlur = (): void => {
    setFocused(false);
    commit();
    reset();
  };
  return (
    <>
      <input
        ref={input}
        className="jpd-ExpressionField"
        type="text"
        maxLength={1000}
        size={1}
        list={nodes.length > 0 ? `${id}-nodes` : undefined}
        spellCheck={false}
        value={text}
        onChange={event => type(event.target.value)}
        onKeyDown={onKeyDown}
        onFocus={() => setFocused(true)}
        onBlur={onBlur}
        aria-label={trans.__('Rank expression')}
        aria-invalid={error !== null}
        aria-describedby={isFocused ? id : undefined}
        title={error?.message ?? `${text}\n${hint}`}
      />
      {isFocused && <Completions id={`${id}-nodes`} text={text} nodes={nodes} />}
      {isFocused && <Advice {...{ id, error, hint }} anchor={input} />}
    </>
  );
}

interface IText {
  text: string;
  type(text: string): void;
  /** Whether it differs from the expression that it replaces. */
  isNews(expression: string): boolean;
  /** Hand over what was typed. */
  enter(expression: string): void;
  /** Forget what was typed. */
  reset(): void;
}

/** What the user types. */
interface IEdit {
  /** The expression that is replaced. */
  readonly from: string;
  enter(expression: string): void;
}

/**
 * The text of the field. It is for what was active when the user began to type: a click in another cell makes that cell
 * active before the field loses the focus.
 */
function useText({ value, current, onEdit }: IExpressionFieldProps): IText {
  const [text, setText] = useState(value);
  const edit = useRef<IEdit | null>(null);
  const reset = (): void => {
    edit.current = null;
    setText(current());
  };
  useEffect(() => {
    // A choice made elsewhere replaces unfinished text. The choice that was there when the user began may be drawn only now.
    if (edit.current?.from !== value) {
      reset();
    }
  }, [value]);
  return {
    text,
    isNews: expression => expression.trim() !== (edit.current?.from ?? current()),
    type: text => {
      edit.current ??= { from: current(), enter: onEdit() };
      setText(text);
    },
    enter: expression => {
      edit.current?.enter(expression);
      edit.current = null;
    },
    reset
  };
}

/** The nodes that what is typed may become. */
function Completions({ id, text, nodes }: { id: string; text: string; nodes: readonly INode[] }): React.ReactElement {
  return (
    <datalist id={id}>
      {completeNodes(text, nodes).map(({ value, named }) => (
        <option key={value} value={value} label={named} />
      ))}
    </datalist>
  );
}

function hintFor(trans: TranslationBundle, hasNodes: boolean): string {
  return hasNodes
    ? trans.__(
        'A rank expression selects ranks: all, 0, 0-3, 0-3,7, ::2 (every second rank), !0 (all but 0), node:0, or a host name'
      )
    : trans.__('A rank expression selects ranks: all, 0, 0-3, 0-3,7, ::2 (every second rank), !0 (all but 0)');
}

interface IAdviceProps {
  id: string;
  anchor: React.RefObject<HTMLInputElement>;
  error: DistError | null;
  hint: string;
}

/** The error in the expression, or a hint on how to write one. */
function Advice({ id, anchor, error, hint }: IAdviceProps): React.ReactElement {
  return (
    <Floating anchor={anchor}>
      {error ? (
        <div id={id} className="jpd-ExpressionField-error" role="alert">
          {error.message} {error.hint}
        </div>
      ) : (
        <div id={id} className="jpd-Hint">
          {hint}
        </div>
      )}
    </Floating>
  );
}

function check(text: string, group: IGroup | null): DistError | null {
  try {
    if (group !== null) {
      parseRanks(text, group);
    }
    return null;
  } catch (reason) {
    return reason as DistError;
  }
}
