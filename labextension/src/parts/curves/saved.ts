import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISavedPlaces } from '../../tokens';
import { addCurvesTab } from './tab';

/** The tab where there is no server, and so no panel. */
export default ({ tabs }: ISavedPlaces, trans: TranslationBundle): void => addCurvesTab(tabs, trans, () => null);
