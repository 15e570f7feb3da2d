/** The options of a start that the form shows by their rows: what their fields show, and what is sent. Pure. */
import type { IStartOptionRow } from '../../services/protocol';
import { numCharacters } from '../format/characters';

/** By the name of the option: as typed, or as a preset has it. Without an entry the server's default holds. */
export type OptionValues = Readonly<Record<string, unknown>>;

interface IReadOption {
  /** For the request; undefined: it is left out. */
  readonly value?: unknown;
  readonly isWrong?: boolean;
}

/** What the field of an option shows; empty: nothing was given. A switch always shows what holds. */
export function shownValue(row: IStartOptionRow, values: OptionValues): string {
  return asTyped(values[row.name] ?? (row.kind === 'flag' ? row.default : null));
}

/** What holds if the field is empty, as it would be typed; empty: nothing does. */
export function shownDefault(row: IStartOptionRow): string {
  return asTyped(row.default);
}

/** Whether what was given for an option cannot be sent. */
export function isWrong(row: IStartOptionRow, values: OptionValues): boolean {
  return read(row, values).isWrong === true;
}

/** The fields of a request, for values without mistakes: a preset's are sent as they are where there is no row. */
export function requestedOptions(rows: readonly IStartOptionRow[], values: OptionValues): Record<string, unknown> {
  const shown = rows.map(row => [row.name, read(row, values).value] as const);
  const names = new Set(rows.map(({ name }) => name));
  const others = Object.entries(values).filter(([name]) => !names.has(name));
  return Object.fromEntries([...others, ...shown].filter(([, value]) => value !== undefined));
}

function read(row: IStartOptionRow, values: OptionValues): IReadOption {
  const text = shownValue(row, values).trim();
  if (text === '') {
    return {};
  }
  if (row.kind === 'flag') {
    const value = text === 'true';
    return value === row.default ? {} : { value };
  }
  const longest = row.max_length ?? Infinity;
  if (row.kind === 'text') {
    return { value: text, isWrong: numCharacters(text) > longest };
  }
  if (row.kind === 'words') {
    const value = wordsIn(text);
    return { value, isWrong: value.some(word => numCharacters(word) > longest) };
  }
  return { value: Number(text), isWrong: !isNumberOf(row, Number(text)) };
}

function isNumberOf({ kind, minimum, maximum }: IStartOptionRow, value: number): boolean {
  const isKind = kind === 'integer' ? Number.isSafeInteger(value) : Number.isFinite(value);
  return isKind && value >= (minimum ?? -Infinity) && value <= (maximum ?? Infinity);
}

function wordsIn(text: string): string[] {
  return text
    .split(',')
    .map(word => word.trim())
    .filter(Boolean);
}

function asTyped(value: unknown): string {
  return Array.isArray(value) ? value.join(', ') : String(value ?? '');
}
