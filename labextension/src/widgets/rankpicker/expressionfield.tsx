/** The text field for a rank expression, checked while the user types. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useEffect, useId, useRef, useState } from 'react';
import { type IShape, parseRanks } from '../../model/format/ranks';
import type { DistError } from '../../services/errors';
import { Floating } from './layout/floating';

interface IExpressionFieldProps {
  value: string;
  group: IShape | null;
  trans: TranslationBundle;
  onCommit(expression: string): void;
}

export function ExpressionField(
  props: IExpressionFieldProps
): React.ReactElement {
  const { value, group, trans, onCommit } = props;
  const [text, setText] = useState(value);
  const [isFocused, setFocused] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  // A choice made elsewhere replaces unfinished text.
  useEffect(() => setText(value), [value]);
  const error = check(text, group);
  const hint = trans.__('A rank expression selects ranks: all, 0, 0-3, 0-3,7, ::2 (every second rank), !0 (all but 0)');
  const commit = (): void => {
    if (!error && text.trim() !== value) {
      onCommit(text);
    }
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === 'Enter') {
      commit();
    } else if (event.key === 'Escape') {
      setText(value);
    }
  };
  const onBlur = (): void => {
    setFocused(false);
    if (error) {
      setText(value);
    } else {
      commit();
    }
  };
  return (
    <>
      <input
        ref={input}
        className="jpd-ExpressionField"
        type="text"
        maxLength={1000}
        size={1}
        spellCheck={false}
        value={text}
        onChange={event => setText(event.target.value)}
        onKeyDown={onKeyDown}
        onFocus={() => setFocused(true)}
        onBlur={onBlur}
        aria-label={trans.__('Rank expression')}
        aria-invalid={error !== null}
        aria-describedby={isFocused ? id : undefined}
        title={error?.message ?? `${text}\n${hint}`}
      />
      {isFocused && (
        <Floating anchor={input}>
          <Advice id={id} error={error} hint={hint} />
        </Floating>
      )}
    </>
  );
}

interface IAdviceProps {
  id: string;
  error: DistError | null;
  hint: string;
}

/** What is wrong with the expression, or what one may be. */
function Advice({ id, error, hint }: IAdviceProps): React.ReactElement {
  if (!error) {
    return (
      <div id={id} className="jpd-Hint">
        {hint}
      </div>
    );
  }
  return (
    <div id={id} className="jpd-ExpressionField-error" role="alert">
      {error.message} {error.hint}
    </div>
  );
}

function check(text: string, group: IShape | null): DistError | null {
  try {
    if (group !== null) {
      parseRanks(text, group);
    }
    return null;
  } catch (reason) {
    return reason as DistError;
  }
}
