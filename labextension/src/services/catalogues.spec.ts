import { expect, it } from 'vitest';
import { catalogue } from './catalogues.harness';

it.each([
  ['de_DE', 'Ranks neu starten…', '0 Ranks', '1 Rank', '2 Ranks'],
  ['fr_FR', 'Redémarrer les rangs…', '0 rang', '1 rang', '2 rangs'],
  ['ja_JP', 'ランクを再起動…', '0 ランク', '1 ランク', '2 ランク'],
  ['zh_CN', '重启 Rank…', '0 个 rank', '1 个 rank', '2 个 rank']
])('%s: %s, %s, %s, %s', (language, restart, ...counts) => {
  const trans = catalogue(language);
  expect(trans.__('Restart Ranks…')).toBe(restart);
  expect([0, 1, 2].map(n => trans._n('%1 rank', '%1 ranks', n))).toEqual(counts);
});
