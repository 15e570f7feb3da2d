import type { TranslationBundle } from '@jupyterlab/translation';
import type { IUndoableCell } from '../../services/protocol';

/** "cell [5]". */
export function cellName(trans: TranslationBundle, { execution_count: count }: IUndoableCell): string {
  return count === null ? trans.__('cell') : trans.__('cell [%1]', count);
}
