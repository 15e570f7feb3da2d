/** The table of variables: a name, and a row for each set of ranks that have it alike. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon } from '@jupyterlab/ui-components';
import React, { memo, useState } from 'react';
import { formatBytes } from '../../model/format/quantities';
import {
  VariableColumn,
  VARIABLE_COLUMNS,
  differingColumns,
  differs,
  differsInside,
  isComparable,
  Order
} from './model/arrange';
import type { IComparedVariable } from './model/variables';
import type { IVariable, IVariableRow } from '../../services/protocol';
import type { IVariableQuestion } from '../../tokens';
import { Comparison } from './comparison';
import { rankWords } from '../../widgets/states/statewords';
import { bytesWords } from './variablewords';

/** At first: a table of 2000 names with 32 rows each would take seconds to draw. */
const MAX_NAMES = 300;
const MAX_ROWS = 4;

export interface IVariableTableProps {
  /** In order. */
  readonly variables: readonly IVariable[];
  readonly comparisons: ReadonlyMap<string, IComparedVariable>;
  readonly order: Order;
  readonly label: string;
  /** Why nothing can be compared now; empty if it can. */
  readonly trouble: string;
  readonly trans: TranslationBundle;
  isCurrent(compared: IComparedVariable): boolean;
  onOrder(order: Order): void;
  onCompare(name: string): void;
  /** What parts and other extensions ask. */
  readonly questions: readonly IVariableQuestion[];
  onAsk(question: IVariableQuestion, name: string): void;
  onClose(name: string): void;
}

/** Drawn again only if one of its properties is another: groups change often, variables do not. */
export const VariableTable = memo((props: IVariableTableProps): React.ReactElement => {
  const { variables, comparisons, label, trans } = props;
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? variables : variables.slice(0, MAX_NAMES);
  const rest = variables.length - shown.length;
  const first = shown.find(isComparable);
  return (
    <>
      <table className="jpd-Variables-table" aria-label={label} onKeyDown={moveFocus}>
        <Head {...props} />
        {shown.map(variable => {
          const compared = comparisons.get(variable.name);
          return (
            <VariableRows
              key={variable.name}
              {...{ variable, compared, trans, trouble: props.trouble }}
              isFirst={variable === first}
              isOld={compared !== undefined && !props.isCurrent(compared)}
              onCompare={props.onCompare}
              questions={props.questions}
              onAsk={props.onAsk}
              onClose={props.onClose}
            />
          );
        })}
      </table>
      {rest > 0 && (
        <button type="button" className="jpd-Variables-more" onClick={() => setWhole(true)}>
          {trans._n('Show %1 more name', 'Show %1 more names', rest)}
        </button>
      )}
    </>
  );
});

function Head({ order, onOrder, trans }: IVariableTableProps): React.ReactElement {
  const sorted = (key: Order, text: string, title: string): React.ReactElement => (
    <th scope="col" aria-sort={order !== key ? undefined : key === 'name' ? 'ascending' : 'descending'}>
      <button type="button" title={title} onClick={() => onOrder(key)}>
        {text}
        {order === key && <caretDownIcon.react tag="span" width="12px" />}
      </button>
    </th>
  );
  return (
    <thead>
      <tr>
        {sorted('name', trans.__('Name'), trans.__('Sort by name'))}
        <th scope="col">{trans.__('Ranks')}</th>
        <th scope="col">{trans.__('Type')}</th>
        <th scope="col">{trans.__('Shape')}</th>
        <th scope="col">{trans.__('Dtype')}</th>
        <th scope="col">{trans.__('Device')}</th>
        {sorted('bytes', trans.__('Bytes'), trans.__('The memory that it holds. Sort by it, the largest first'))}
        <th scope="col">{trans.__('Value')}</th>
        <th scope="col" aria-label={trans.__('Compare')} />
      </tr>
    </thead>
  );
}

interface IVariableProps extends Pick<
  IVariableTableProps,
  'trans' | 'trouble' | 'questions' | 'onCompare' | 'onAsk' | 'onClose'
> {
  readonly variable: IVariable;
  readonly compared: IComparedVariable | undefined;
  readonly isOld: boolean;
  /** Whether Tab goes to its button; arrows go to the others. */
  readonly isFirst: boolean;
}

const VariableRows = memo((props: IVariableProps): React.ReactElement => {
  const { variable, compared, isOld, trans, onClose } = props;
  const { name, missing } = variable;
  const [isWhole, setWhole] = useState(false);
  const rows = isWhole ? variable.rows : variable.rows.slice(0, MAX_ROWS);
  const rest = variable.rows.length - rows.length;
  const odd = differingColumns(variable);
  const span = rows.length + (missing ? 1 : 0) + (rest > 0 ? 1 : 0);
  const more = trans._n('%1 more set of ranks', '%1 more sets of ranks', rest);
  const lines = [
    ...rows.map((row, i) => (
      <Cells key={`${row.ranks} ${i}`} {...{ row, odd, trans }} isInside={differsInside(variable)} />
    )),
    rest > 0 && (
      <td key="more" colSpan={7}>
        <button
          type="button"
          className="jpd-Variables-more"
          aria-label={trans.__('%1 of %2', more, name)}
          onClick={() => setWhole(true)}
        >
          {more}
        </button>
      </td>
    ),
    missing && (
      <React.Fragment key="missing">
        <td data-column="ranks">{rankWords(trans, missing)}</td>
        <td className="jpd-mod-differs" colSpan={6}>
          {trans.__('not defined')}
        </td>
      </React.Fragment>
    )
  ].filter(Boolean);
  return (
    <tbody className="jpd-Variable" data-name={name}>
      {lines.map((cells, i) => (
        <tr key={i}>
          {i === 0 && <Name variable={variable} span={span} trans={trans} />}
          {cells}
          {i === 0 && <td rowSpan={span}>{isComparable(variable) && <Buttons {...props} />}</td>}
        </tr>
      ))}
      {compared && (
        <tr>
          <td colSpan={9}>
            <Comparison {...{ name, compared, isOld, trans }} onClose={() => onClose(name)} />
          </td>
        </tr>
      )}
    </tbody>
  );
});

function Name({
  variable,
  span,
  trans
}: Pick<IVariableProps, 'variable' | 'trans'> & { span: number }): React.ReactElement {
  const words = trans.__('differs between ranks');
  return (
    <th scope="rowgroup" rowSpan={span}>
      {variable.name}
      {differs(variable) && (
        <span className="jpd-Variable-mark" role="img" aria-label={words} title={words}>
          {'\u2260'}
        </span>
      )}
    </th>
  );
}

interface ICellsProps extends Pick<IVariableTableProps, 'trans'> {
  readonly row: IVariableRow;
  /** The columns in which ranks differ. */
  readonly odd: ReadonlySet<VariableColumn>;
  /** Rows look the same, and are not. */
  readonly isInside: boolean;
}

function Cells({ row, odd, isInside, trans }: ICellsProps): React.ReactElement {
  return (
    <>
      <td data-column="ranks">{rankWords(trans, row.ranks)}</td>
      {VARIABLE_COLUMNS.map(column => (
        <td
          key={column}
          data-column={column}
          title={column === 'value' && row.unseen ? trans.__('Not looked at: %1', row.unseen) : undefined}
          className={odd.has(column) ? 'jpd-mod-differs' : undefined}
        >
          {column !== 'bytes' ? row[column] : <Bytes {...{ row, trans }} />}
          {column === 'value' && isInside && (
            <span className="jpd-Variable-parts">{trans.__('other contents: Compare shows where')}</span>
          )}
        </td>
      ))}
    </>
  );
}

/** The memory that a variable holds, and a note below if it is shared. */
function Bytes({ row, trans }: Pick<ICellsProps, 'row' | 'trans'>): React.ReactElement {
  const words = bytesWords(trans, row);
  return (
    <>
      {row.bytes === null ? '' : formatBytes(row.bytes)}
      {words && (
        <span className="jpd-Variable-parts" title={words}>
          {words}
        </span>
      )}
    </>
  );
}

/** Stays in the tab order while a cell runs, with the reason why it is disabled. */
function Buttons({
  variable,
  trouble,
  isFirst,
  trans,
  questions,
  onCompare,
  onAsk
}: IVariableProps): React.ReactElement {
  const { name } = variable;
  const button = (
    text: string,
    words: string,
    onClick: (name: string) => void,
    isTabbed = false
  ): React.ReactElement => (
    <button
      key={text}
      type="button"
      className="jpd-Variable-compare"
      tabIndex={isTabbed ? 0 : -1}
      aria-label={words}
      aria-disabled={trouble !== ''}
      title={trouble || words}
      onClick={() => onClick(name)}
    >
      {text}
    </button>
  );
  return (
    <>
      {button(trans.__('Compare'), trans.__('Compare %1 between ranks', name), onCompare, isFirst)}
      {questions
        .filter(question => question.isFor(variable))
        .map(question => button(question.label, question.caption(name), () => onAsk(question, name)))}
    </>
  );
}

/** One tab stop for all Compare buttons; arrows move between them. */
function moveFocus(event: React.KeyboardEvent<HTMLTableElement>): void {
  const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>('.jpd-Variable-compare')];
  const at = buttons.indexOf(event.target as HTMLElement);
  const targets: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 };
  const target = targets[event.key];
  if (at >= 0 && target !== undefined) {
    event.preventDefault();
    buttons[target]?.focus();
  }
}
