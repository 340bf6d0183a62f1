import t from 'tap'
import { codeText } from '../../../runtime/definitions/code-text.ts'
import { mentionedNames, plainSource, tokensOf } from '../../../runtime/definitions/source-text.ts'
import { fromPromise, setupWork } from '../../../runtime/index.ts'

/** Pairs of texts that mean the same. */
const EQUAL: readonly (readonly [one: string, other: string, why: string])[] = [
  ['a+b', 'a  +\n b // sum', 'spaces and comments'],
  ['f(a, b)', 'f(\n  a,\n  b,\n)', 'a comma at the end of arguments'],
  ['[a]', '[\n a,\n]', 'a comma at the end of a list'],
  ['({ a })', '({a,})', 'a comma at the end of an object'],
  ['x => x / 2 / y', 'x => x/2/y', 'a division'],
  ['(a + b) / 2', '(a+b)/2', 'a division after a parenthesis'],
  ['a[0] / 2 / b', 'a[0]/2/b', 'a division after a bracket'],
  ['if (a) /b c/.test(d)', 'if (a)  /b c/.test( d )', 'a pattern after a head'],
  ['return /a b/', 'return  /a b/', 'a pattern after a word'],
  ['`a ${ b } c`', '`a ${b} c`', 'code in a template'],
  ['a /* b */ - c', 'a - c', 'a comment between lines'],
  ['0xe + x', '0xe+x', 'numbers'],
  ['!/a b/.test(c)', '! /a b/.test( c )', 'a pattern after a sign'],
  ['#!/usr/bin/env node\na', 'a', 'the first line of a script']
]

/** Pairs of texts that differ. */
const DIFFERENT: readonly (readonly [one: string, other: string, why: string])[] = [
  ["'a b'", "'a  b'", 'spaces in a text'],
  ['"a // b"', '"a // c"', 'a comment in a text'],
  ['`a b`', '`a  b`', 'spaces in a template'],
  ['`${a} b`', '`${a}  b`', 'spaces in a template after code'],
  ['/a b/', '/a  b/', 'spaces in a pattern'],
  ['/[/ ]/', '/[/  ]/', 'a slash in a class of a pattern'],
  ['a + +b', 'a ++b', 'signs that are one'],
  ['return a', 'return\na', 'the end of a line after return'],
  ['a\n++b', 'a ++\nb', 'the end of a line before ++'],
  ['[,]', '[]', 'a list with a hole'],
  ['[a,,]', '[a,]', 'a list with a hole at its end'],
  ['a.b', 'a?.b', 'an optional member'],
  ['1.5', '1 .5', 'numbers']
]

await t.test('sources are equal apart from comments and layout', t => {
  for (const [one, other, why] of EQUAL) t.equal(plainSource(one), plainSource(other), why)
  for (const [one, other, why] of DIFFERENT) t.not(plainSource(one), plainSource(other), why)
  t.end()
})

await t.test('a source whose tokens cannot be told stays as it is', t => {
  for (const source of [
    "const a = <div>it's  a</div>",
    'a = b\n}  /c/',
    'of  /a/',
    'x!  / 2',
    '(a)!  / 2',
    '/* a  b',
    "'a\nb'  ",
    '`a ${  b',
    '`a  ',
    '`a ${ b }  c',
    'a  )',
    '(a  ]',
    '(a  ',
    '\\u0061  b',
    'a  <!-- b',
    'a\n#!  b',
    'x = /a\n b/',
    'a++  /b/'
  ]) {
    t.equal(tokensOf(source), undefined, source)
    t.equal(plainSource(source), source)
  }
  t.strictSame([...mentionedNames("<a>it's</a>")].toSorted(), ['a', 'it', 's'])
  t.end()
})

await t.test('the names that a source mentions are without members and keys', t => {
  t.strictSame(
    [...mentionedNames('({ a, b: c }) => d.e?.f + g[h] ? { i } : { j: 1, k }')].toSorted(),
    'acdghik'.split('')
  )
  t.end()
})

await t.test('the text of code has functions, members and what taskchart was given', t => {
  class Price {
    readonly cents: number
    constructor(cents: number) {
      this.cents = cents
    }
  }
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  const values = [
    undefined,
    null,
    1,
    1n,
    Symbol('a'),
    'a',
    [1, 'a'],
    { b: 1, a: [2] },
    new Map([['a', 1]]),
    new Set(['a']),
    new Date(0),
    /a/,
    new URL('http://a.example'),
    new Price(3),
    cyclic,
    Object.assign(Object.create(null), { c: 1 }),
    Object.assign(Object.create({ a: 1 }), { d: 1 }),
    {
      get a() {
        return 1
      }
    },
    () => 1,
    Object.assign(() => 1, { a: 1 }),
    fromPromise(async () => 1),
    fromPromise(async () => 2),
    setupWork({}).createMachine({ id: 'a', initial: 'b', states: { b: {} } })
  ]
  const texts = values.map(value => codeText(value).text)
  t.equal(new Set(texts).size, texts.length, 'all differ')
  t.equal(codeText({ a: 1, b: 2 }).text, codeText({ b: 2, a: 1 }).text, 'the order of members does not matter')
  t.match(codeText(fromPromise(async () => 'receipt')).sources, [/'receipt'/])
  t.ok(codeText(Math.max).isHidden, 'a function of the engine hides its source')
  t.ok(codeText(Array.from({ length: 30_000 }, () => ({}))).isHidden, 'a value that is too large is not read whole')
  t.end()
})
