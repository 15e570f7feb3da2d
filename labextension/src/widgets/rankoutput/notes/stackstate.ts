/**
 * Where ranks are and which call they wait in, in the page's language. Groups send both as text in fixed forms
 * (agent/watch/verdicts/sentences.py, protocol/wire/places.py); text in another form is shown as it is.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IRankStack } from '../../../services/protocol';

type IStackOwner = Pick<IRankStack, 'ranks' | 'state' | 'call'>;

/** What a rank or several do: "waits in barrier, number 4", "wait in barrier, number 4", "idle". */
export function stateOfStack(trans: TranslationBundle, { ranks, state, call }: IStackOwner): string {
  const called = callWords(trans, call ?? '');
  const isOne = /^\d+$/.test(ranks);
  const words: Record<IRankStack['state'], string> = {
    waits: isOne ? trans.__('waits in %1', called) : trans.__('wait in %1', called),
    runs: isOne ? trans.__('runs') : trans.__('run'),
    idle: trans.__('idle'),
    dead: trans.__('dead'),
    unknown: isOne ? trans.__('does not answer') : trans.__('do not answer')
  };
  return words[state];
}

/** "line 2 of cell [4]: dist.barrier()", "line 3 of model.py" */
const LINE = /^line (\d+) of (?:cell \[(\d+)\]|(the cell)|([^:]+))(?:: (.*))?$/s;
const SINCE = /^since cell \[(\d+)\]$/;
/** "all_reduce (root 0) in all_gather in FSDP of process group 1, number 4, float [4], of cell [3]" */
const CALL =
  /^(\S+)(?: \((peer|root) (\d+)(?:, tag (\d+))?\))?(?: in (.+?))?(?: of process group (.+?))?(?:, number (\d+))?(?:, ((?!of cell).+?))?(?:, of cell \[(\d+)\])?$/s;

/** The line that a rank is at, or since when it is idle. */
export function placeWords(trans: TranslationBundle, place: string): string {
  const since = SINCE.exec(place);
  if (since) {
    return trans.__('since cell [%1]', since[1]);
  }
  const [, line, cell, debugged, file, code] = LINE.exec(place) ?? [];
  if (line === undefined) {
    return place;
  }
  const where = cell
    ? trans.__('line %1 of cell [%2]', line, cell)
    : debugged
      ? trans.__('line %1 of the cell', line)
      : trans.__('line %1 of %2', line, file);
  return code ? trans.__('%1: %2', where, code) : where;
}

/** The collective that ranks wait in. */
export function callWords(trans: TranslationBundle, call: string): string {
  const found = CALL.exec(call);
  if (!found) {
    return call;
  }
  const [, name, role, other, tag, inside, group, number, shape, cell] = found;
  const place = inside ? trans.__('%1 in %2', name, inside) : name;
  const parts = [
    role === 'root' ? trans.__('root %1', other) : role === 'peer' ? trans.__('peer %1', other) : '',
    tag ? trans.__('tag %1', tag) : '',
    group ? trans.__('process group %1', group) : '',
    number ? trans.__('number %1', number) : '',
    shape ?? '',
    cell ? trans.__('of cell [%1]', cell) : ''
  ];
  return [place, ...parts.filter(Boolean)].join(', ');
}
