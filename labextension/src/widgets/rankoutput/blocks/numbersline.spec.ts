import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';
import logLines from '../../../../../tests/vectors/lines.json';
import vectors from '../../../../../tests/vectors/numbers.json';
import { Condenser, ICondensableItem } from '../../../model/numbers/condense';
import { tokenize } from '../../../model/numbers/numbertokens';
import { streamText } from '../../../model/executions/executionview';
import { NumbersLine } from './numbersline';

const trans = nullTranslator.load('jupyter_dist');
const NONE: ReadonlySet<string> = new Set();

function items(lines: readonly (readonly string[])[], name = 'stdout'): ICondensableItem[] {
  return lines.map(([ranks, text], i) => ({ key: `live-${i}`, ranks, output: { output_type: 'stream', name, text } }));
}

function textOf(item: ICondensableItem): string {
  if (!item.condensed) {
    return streamText(item.output as never);
  }
  const { node } = new NumbersLine(trans, item.condensed, () => undefined);
  node.querySelector('button')!.remove();
  return node.textContent!;
}

describe('lines that differ in numbers', () => {
  it.each(vectors)('are one: $name', ({ lines, expected, stream }) => {
    const condensed = new Condenser().apply(items(lines, stream), NONE);
    expect(condensed.map(item => [item.ranks, textOf(item)])).toEqual(expected);
  });

  it.each(logLines)('are shown as printed by $name', ({ lines, tokens, expected }) => {
    const found = tokenize(lines[0][1].replace(/\n$/, '')).tokens;
    expect(found.map(({ kind, text }) => [kind, text])).toEqual(tokens);
    const condensed = new Condenser().apply(items(lines), NONE);
    expect(condensed.map(item => [item.ranks, textOf(item)])).toEqual(expected);
  });

  it('lose nothing: opened ones are followed by the exact lines', () => {
    for (const { lines, stream } of vectors) {
      const condenser = new Condenser();
      const given = items(lines, stream);
      const keys = condenser.apply(given, NONE).flatMap(item => (item.condensed ? [item.key] : []));
      const opened = condenser.apply(given, new Set(keys)).filter(item => !item.condensed);
      const perRank = (some: readonly ICondensableItem[], rank: string): string =>
        some
          .filter(item => item.ranks.split(',').includes(rank))
          .map(textOf)
          .join('');
      for (const { ranks } of given) {
        expect(perRank(opened, ranks)).toBe(perRank(given, ranks));
      }
    }
  });

  it('stay the same objects, so that only what changed is drawn', () => {
    const condenser = new Condenser();
    const given = items([
      ['0-1', 'equal\n'],
      ['0', 'a 0.5\n'],
      ['1', 'a 0.6\n']
    ]);
    const first = condenser.apply(given, NONE);
    const again = condenser.apply([...given, ...items([['0', 'b 0.5\n']])], NONE);
    expect(first[0]).toBe(given[0]);
    expect(again[1].condensed).toBe(first[1].condensed);
  });

  it('marks a rank that is far from the others', () => {
    const lines = [...Array(7).keys()].map(rank => [`${rank}`, `norm ${(1 + rank / 1000).toFixed(3)}\n`]);
    const [item] = new Condenser().apply(items([...lines, ['7', 'norm 9.500\n']]), NONE);
    const { node } = new NumbersLine(trans, item.condensed!, () => undefined);
    expect([...node.querySelectorAll('.jpd-Numbers-odd')].map(odd => odd.textContent)).toEqual(['9.5 (7)']);
  });
});
