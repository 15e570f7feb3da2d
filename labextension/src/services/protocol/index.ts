/**
 * The wire types: a mirror of docs/api.md, and nothing else.
 *
 * Field names are the wire's own (snake_case). Times are seconds since the
 * epoch, rank sets are canonical expressions such as "0-3,7".
 */
export * from './executions';
export * from './groups';
export * from './messages';
