/** The tokens of parts, for other extensions. Made by `make generate`. */
export * from './undo/tokens';
