/** Ranks as an expression, checked as it is written. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useEffect, useId, useRef, useState } from 'react';
import { parseRanks } from '../../model/format/ranks';
import type { DistError } from '../../services/errors';
import { Floating } from './layout/floating';

interface IExpressionFieldProps {
  value: string;
  worldSize: number | null;
  trans: TranslationBundle;
  onCommit(expression: string): void;
}

export function ExpressionField(
  props: IExpressionFieldProps
): React.ReactElement {
  const { value, worldSize, trans, onCommit } = props;
  const [text, setText] = useState(value);
  const [isFocused, setFocused] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  // What was chosen elsewhere replaces what was being written.
  useEffect(() => setText(value), [value]);
  const error = check(text, worldSize);
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
        aria-label={trans.__('Ranks as an expression')}
        aria-invalid={error !== null}
        aria-describedby={error && isFocused ? id : undefined}
        title={error?.message ?? `${text}\n${trans.__('Ranks: all, 0, 0-3, 0-3,7, ::2, !0')}`}
      />
      {error && isFocused && (
        <Floating anchor={input}>
          <div id={id} className="jpd-ExpressionField-error" role="alert">
            {error.message} {error.hint}
          </div>
        </Floating>
      )}
    </>
  );
}

function check(text: string, worldSize: number | null): DistError | null {
  try {
    if (worldSize !== null) {
      parseRanks(text, worldSize);
    }
    return null;
  } catch (reason) {
    return reason as DistError;
  }
}
