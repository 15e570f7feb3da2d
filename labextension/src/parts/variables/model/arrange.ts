/** Which variables a panel lists, in what order, and what of them differs between ranks. Pure. */
import type { IVariable, IVariableRow } from '../../../services/protocol';

/** The fields of a variable on a rank, in the order of the columns. */
export const VARIABLE_COLUMNS = ['type', 'shape', 'dtype', 'device', 'bytes', 'value'] as const;
export type VariableColumn = (typeof VARIABLE_COLUMNS)[number];

export type Order = 'name' | 'bytes';

export interface IArrangement {
  /** Part of a name or a type, in any case. */
  readonly filter: string;
  /** By name, or the largest first. */
  readonly order: Order;
  readonly isDifferingOnly: boolean;
}

/** Whether a variable is not the same on all ranks that answered. */
export function differs({ rows, missing }: IVariable): boolean {
  return rows.length > 1 || missing !== '';
}

/** The columns in which ranks differ; the value, if they differ inside in what no column shows. */
export function differingColumns(variable: IVariable): ReadonlySet<VariableColumn> {
  const { rows } = variable;
  const odd = VARIABLE_COLUMNS.filter(column => rows.some(row => row[column] !== rows[0][column]));
  return new Set(differsInside(variable) ? [...odd, 'value'] : odd);
}

/** Whether some rows look the same, and are not. */
export function differsInside({ rows }: IVariable): boolean {
  const shown = new Set(rows.map(row => JSON.stringify(VARIABLE_COLUMNS.map(column => row[column]))));
  return shown.size < rows.length;
}

/** Whether it has parts that can be compared; a plain value shows all that it is. */
export function isComparable({ rows }: IVariable): boolean {
  return rows.some(({ kind }) => kind !== '');
}

/** The names that are the same on all ranks as far as was looked, and have more. */
export function unseen(variables: readonly IVariable[]): IVariable[] {
  return variables.filter(one => !differs(one) && one.rows[0]?.unseen);
}

export function arrange(variables: readonly IVariable[], how: IArrangement): IVariable[] {
  const wanted = how.filter.trim().toLowerCase();
  const hasIt = (text: string): boolean => text.toLowerCase().includes(wanted);
  return variables
    .filter(
      one => (!how.isDifferingOnly || differs(one)) && (hasIt(one.name) || one.rows.some(({ type }) => hasIt(type)))
    )
    .sort((a, b) => (how.order === 'bytes' ? mostBytes(b.rows) - mostBytes(a.rows) : 0) || byName(a, b));
}

/** On the rank where it is largest; what has no size is last. */
function mostBytes(rows: readonly IVariableRow[]): number {
  return Math.max(-1, ...rows.map(({ bytes }) => bytes ?? -1));
}

function byName(a: IVariable, b: IVariable): number {
  return a.name.localeCompare(b.name, undefined, { numeric: true });
}
