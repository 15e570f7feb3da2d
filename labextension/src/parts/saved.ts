/** What parts add to outputs where there is no server. Made by `make generate`. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISavedPlaces } from '../tokens';
import curves from './curves/saved';
import hangs from './hangs/saved';

type AddPart = (places: ISavedPlaces, trans: TranslationBundle) => void;

export const savedParts: AddPart[] = [curves, hangs];
