/**
 * Print the strings of the page that have translations, as JSON: what `trans.__`, `_n`, `_p` and `_np` are called with.
 *
 * With the parser of TypeScript, because a string can be a sum of literals over several lines. Anything else than literals
 * cannot be found in a catalogue: such a call is an error. So is a translation that a template literal makes a part of a
 * longer sentence, which has another order in another language.
 */
import console from 'node:console';
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import ts from 'typescript';

const SOURCES = 'labextension/src';
/** How many of the first arguments are strings, and whether the first of them is a context. */
const METHODS = new Map([
  ['__', { strings: 1 }],
  ['_n', { strings: 2 }],
  ['_p', { strings: 2, context: true }],
  ['_np', { strings: 3, context: true }]
]);

/** What may stand beside a translation in a template literal: it separates whole texts. */
const SEPARATORS = /^[\s\u00b7/()[\]]*$/;

const found = [];
const faults = [];

for (const file of fs.readdirSync(SOURCES, { recursive: true }).sort()) {
  if (/\.tsx?$/.test(file) && !/\.(spec|harness|d)\.tsx?$/.test(file)) {
    readFile(path.join(SOURCES, file));
  }
}
if (faults.length) {
  console.error(faults.join('\n'));
  process.exit(1);
}
console.log(JSON.stringify(found));

function readFile(file) {
  const source = ts.createSourceFile(file, fs.readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  visit(source);

  function visit(node) {
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const method = METHODS.get(node.expression.name.text);
      if (method) {
        add(node, method);
      }
    }
    ts.forEachChild(node, visit);
  }

  function add(call, method) {
    const texts = call.arguments.slice(0, method.strings).map(literal);
    if (texts.length < method.strings || texts.includes(undefined)) {
      fault(call, 'only literal strings can be translated');
      return;
    }
    if (ts.isTemplateSpan(call.parent) && !neighbours(call.parent).every(text => SEPARATORS.test(text))) {
      fault(call, 'a sentence is translated as a whole');
    }
    const context = method.context ? texts.shift() : null;
    found.push({ file, context, id: texts[0], plural: texts[1] ?? null });
  }

  function fault(call, reason) {
    const line = source.getLineAndCharacterOfPosition(call.getStart()).line + 1;
    faults.push(`${file}:${line}: ${reason}: ${call.getText().slice(0, 80)}`);
  }
}

/** Return the literal texts before and after a part of a template literal. */
function neighbours(span) {
  const { head, templateSpans } = span.parent;
  const before = templateSpans[templateSpans.indexOf(span) - 1]?.literal ?? head;
  return [before.text, span.literal.text];
}

/** Return the text of a literal or of a sum of literals. */
function literal(node) {
  if (ts.isParenthesizedExpression(node)) {
    return literal(node.expression);
  }
  if (ts.isStringLiteralLike(node)) {
    return node.text;
  }
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    const [left, right] = [literal(node.left), literal(node.right)];
    return left === undefined || right === undefined ? undefined : left + right;
  }
  return undefined;
}
