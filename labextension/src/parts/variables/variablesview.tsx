/** What the panel of variables shows: tools, a line about the state, and the table. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import React, { useCallback, useEffect, useMemo, useState } from 'react';
import { arrange, IArrangement } from './model/arrange';
import type { IComparedVariable, VariablesModel } from './model/variables';
import type { IDistVariableQuestions, IDistVariableSections, IVariableQuestion } from '../../tokens';
import { ErrorNote } from '../../widgets/base/errornote';
import { useSignal } from '../../widgets/base/hooks';
import { MemoryLines } from './memory';
import { VariableTable } from './variabletable';
import { gapWords, statusWords } from './variablewords';

export interface IVariablesViewProps {
  readonly model: VariablesModel;
  /** The group's name. */
  readonly name: string;
  readonly questions: IDistVariableQuestions;
  readonly sections: IDistVariableSections;
  readonly trans: TranslationBundle;
  /** Called when it is drawn. */
  onReady(): void;
}

const BY_NAME: IArrangement = { filter: '', order: 'name', isDifferingOnly: false };

export function VariablesView(props: IVariablesViewProps): React.ReactElement {
  const { model, name, questions, sections, trans, onReady } = props;
  useSignal(model.changed);
  useSignal(questions.changed);
  useSignal(sections.changed);
  useEffect(onReady, []);
  const [how, setHow] = useState(BY_NAME);
  const { listed, phase, error, comparisons } = model;
  const answer = listed?.answer ?? null;
  const shown = useMemo(() => arrange(answer?.variables ?? [], how), [answer, how]);
  const trouble = phase === 'idle' ? '' : trans.__('Ranks are compared when all of them are idle.');
  // Of each cell's end, too: what was compared before it is out of date then.
  const isCurrent = useCallback((compared: IComparedVariable) => model.isCurrent(compared), [model, phase, listed]);
  const onCompare = useCallback((variable: string) => void model.compare(variable), [model]);
  const onAsk = useCallback((asked: IVariableQuestion, variable: string) => void model.ask(asked, variable), [model]);
  const onClose = useCallback((variable: string) => model.closeComparison(variable), [model]);
  const onOrder = useCallback((order: IArrangement['order']) => setHow(old => ({ ...old, order })), []);
  return (
    <>
      <Tools {...{ model, how, setHow, trans }} />
      {sections.items.map(({ id, render }) => (
        <React.Fragment key={id}>{render(model.group, model.isVisible)}</React.Fragment>
      ))}
      <Status model={model} trans={trans} />
      {error && <ErrorNote error={error} />}
      <div className="jpd-Variables-scroll" data-old={phase !== 'idle'}>
        {shown.length > 0 && (
          <VariableTable
            {...{
              variables: shown,
              comparisons,
              order: how.order,
              trans,
              isCurrent,
              onCompare,
              questions: questions.items,
              onAsk,
              onClose,
              onOrder,
              trouble
            }}
            label={trans.__('Variables of %1', name)}
          />
        )}
        {shown.length === 0 && answer && <p>{emptyWords(trans, answer.variables.length)}</p>}
      </div>
    </>
  );
}

/** What is shown, of when, and what is missing in it. */
function Status({ model, trans }: Pick<IVariablesViewProps, 'model' | 'trans'>): React.ReactElement {
  const { listed, phase, error } = model;
  const answer = listed?.answer ?? null;
  const time = listed ? new Date(listed.at).toLocaleTimeString() : '';
  return (
    <>
      <p className="jpd-Variables-status" role="status" data-phase={phase}>
        {error && !listed ? '' : statusWords(trans, phase, answer, time)}
      </p>
      {answer?.memory && <MemoryLines memory={answer.memory} trans={trans} />}
      {answer && gapWords(trans, answer).map(gap => <p key={gap}>{gap}</p>)}
    </>
  );
}

function emptyWords(trans: TranslationBundle, hidden: number): string {
  return hidden > 0
    ? trans.__('No variable has this in its name or type.')
    : trans.__('Cells have not made variables yet. Names that begin with _ and modules are not listed.');
}

interface IVariablesToolsProps {
  readonly model: VariablesModel;
  readonly how: IArrangement;
  setHow(how: IArrangement): void;
  readonly trans: TranslationBundle;
}

function Tools({ model, how, setHow, trans }: IVariablesToolsProps): React.ReactElement {
  const words = trans.__('Filter by name or type');
  return (
    <div className="jpd-Variables-tools" role="search">
      <input
        className="jp-mod-styled"
        type="text"
        placeholder={words}
        aria-label={words}
        value={how.filter}
        spellCheck={false}
        onChange={event => setHow({ ...how, filter: event.target.value })}
        onKeyDown={event => event.key === 'Escape' && setHow({ ...how, filter: '' })}
      />
      <label>
        <input
          type="checkbox"
          checked={how.isDifferingOnly}
          onChange={event => setHow({ ...how, isDifferingOnly: event.target.checked })}
        />
        {trans.__('Only what differs')}
      </label>
      <button
        type="button"
        className="jpd-LogTool"
        title={trans.__('Refresh the variables')}
        aria-label={trans.__('Refresh the variables')}
        disabled={model.phase !== 'idle'}
        onClick={() => void model.refresh()}
      >
        <refreshIcon.react tag="span" width="16px" />
      </button>
    </div>
  );
}
