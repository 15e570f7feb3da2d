import { expect, it } from 'vitest';
import type { IGroup } from '../../services/protocol';
import { type IReplaceChoice, replaceBody, replaceOffer } from './replacing';

const SAVE: IReplaceChoice = { id: 'save', label: '', hint: '', body: { state: 'save', save: 'before' } };

/** A group with these states of its ranks; `lost`: of a device. */
function group(states: string): Pick<IGroup, 'ranks'> {
  const ranks = states.split(' ').map((state, rank) => ({
    rank,
    state: state === 'lost' ? 'idle' : state,
    process_group: state === 'lost' ? 'lost' : 'ok'
  }));
  return { ranks: ranks as IGroup['ranks'] };
}

it('nothing is to be replaced while all ranks live', () => {
  expect(replaceOffer(group('idle busy'))).toBeNull();
});

it('dead ranks, and those without device, can begin with what a part has, which is proposed', () => {
  const offer = replaceOffer(group('idle dead lost idle'), [SAVE])!;
  expect(offer).toEqual({ ranks: '1-2', others: '0,3', choices: [SAVE], copiesAll: false, best: 'save' });
  expect(replaceBody(offer, 'save')).toEqual({ state: 'save', save: 'before' });
  expect(replaceBody(offer, 'copy')).toEqual({ state: 'copy' });
});

it('what cannot be chosen now is not proposed', () => {
  expect(replaceOffer(group('idle dead'), [{ ...SAVE, body: null }])!.best).toBe('cells');
});

it('the variables of a single rank are all copied, because nothing can be compared', () => {
  const offer = replaceOffer(group('idle dead'))!;
  expect(offer).toMatchObject({ choices: [], copiesAll: true, best: 'cells' });
  expect(replaceBody(offer, 'copy')).toEqual({ state: 'copy', others: 'copy' });
  expect([replaceBody(offer, 'cells'), replaceBody(offer, 'empty')]).toEqual([{ state: 'empty' }, { state: 'empty' }]);
});
