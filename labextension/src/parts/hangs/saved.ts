import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISavedPlaces } from '../../tokens';
import { HangNote } from './hangnote';

/** The note where there is no server: of a kernel that runs. */
export default ({ notes }: ISavedPlaces, trans: TranslationBundle): void =>
  void notes.add({ id: 'jupyter-dist:hangs', rank: 0, create: () => new HangNote(trans, null) });
