/** The tabs that parts add to outputs where there is no server. Made by `make generate`. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDistOutputTabs } from '../tokens';
import curves from './curves/saved';

type AddTabs = (tabs: IDistOutputTabs, trans: TranslationBundle) => void;

export const savedTabs: AddTabs[] = [curves];
