/** What the metadata of notebooks and cells have for this extension. */

/** The key in the metadata of notebooks and cells. */
export const METADATA_KEY = 'jupyter_dist';

/** What notebook and cell models have in common here. */
export interface IHasMetadata {
  getMetadata(key: string): unknown;
  setMetadata(key: string, value: unknown): void;
  deleteMetadata(key: string): void;
}

/** The fields, as they are in the file. */
export function fields(model: IHasMetadata): Record<string, unknown> {
  const value = model.getMetadata(METADATA_KEY);
  return value && typeof value === 'object' ? (value as Record<string, unknown>) : {};
}
