import { describe, expect, it } from 'vitest';
import vectors from '../../../../../tests/vectors/curves.json';
import { namedNumbers } from './named';

describe('numbers with a name', () => {
  it.each(vectors)('are found in $line', ({ line, step, values }) => {
    const found = namedNumbers(line);
    expect(found.step && [found.step.name, found.step.value]).toEqual(step);
    const expected = Object.entries(values).map(([name, value]) => [
      name,
      Number(String(value).replace('inf', 'Infinity'))
    ]);
    expect(found.values.map(({ name, value }) => [name, value])).toEqual(expected);
  });

  it('are measured if they are not whole', () => {
    const measured = namedNumbers('loss 0.5 lr 1e-3 took 3 s left 12').values.map(({ isMeasured }) => isMeasured);
    expect(measured).toEqual([true, true, true, false]);
  });

  it('are not looked for in very long lines', () => {
    expect(namedNumbers(`loss 0.5 ${'a'.repeat(2000)}`).values).toEqual([]);
  });
});
