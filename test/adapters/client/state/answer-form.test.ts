import t from 'tap'
import {
  draftIn,
  type FieldDraft,
  fieldOf,
  fieldWords,
  formValue,
  startOf,
  termsField
} from '../../../../adapters/client/state/answer-form.ts'

const order = {
  type: 'object',
  required: ['dish', 'people'],
  properties: {
    dish: { type: 'string', title: 'Dish', description: 'What you eat.', minLength: 2, pattern: '.+' },
    people: { type: 'integer', minimum: 1, maximum: 12, multipleOf: 1, default: 2 },
    sides: { type: 'array', items: { type: 'string' }, default: ['rice'] },
    address: { type: 'object', required: ['street'], properties: { street: { type: 'string' } } },
    notes: 7
  }
}

await t.test('a schema becomes a field, whatever an agent writes in it', async t => {
  const cases: [unknown, object][] = [
    [undefined, { kind: 'json' }],
    [{ const: 1 }, { kind: 'const', value: 1 }],
    [{ enum: ['a', 2] }, { kind: 'choice', options: ['a', 2] }],
    [{ anyOf: [{ const: 'a' }, { const: 'b' }] }, { kind: 'choice', options: ['a', 'b'] }],
    [{ oneOf: [{ const: 'a' }] }, { kind: 'choice', options: ['a'] }],
    [{ anyOf: [{ type: 'number' }, { type: 'null' }] }, { kind: 'number', isWhole: false }],
    [{ anyOf: [{ type: 'number' }, { type: 'string' }] }, { kind: 'text', input: 'text' }],
    [{ anyOf: [{ type: 'number' }, { type: 'boolean' }] }, { kind: 'json' }],
    [{ anyOf: [1] }, { kind: 'json' }],
    [
      { type: 'string', format: 'date', pattern: '.' },
      { kind: 'text', input: 'date' }
    ],
    [
      { type: 'string', maxLength: 3 },
      { kind: 'text', input: 'text', max: 3 }
    ],
    [
      { type: 'number', exclusiveMinimum: 1, exclusiveMaximum: true, minimum: -Number.MAX_SAFE_INTEGER },
      { kind: 'number', isWhole: false, above: 1 }
    ],
    [{ type: 'boolean' }, { kind: 'boolean' }],
    [
      { type: 'array', items: { type: 'integer' } },
      { kind: 'list', item: { kind: 'number', isWhole: true } }
    ],
    [{ type: 'array' }, { kind: 'json' }],
    [{ type: 'object' }, { kind: 'json' }],
    [
      { type: ['integer', 'null'], minimum: 1 },
      { kind: 'number', isWhole: true, min: 1 }
    ],
    [{ type: ['number', 'string'] }, { kind: 'text', input: 'text' }],
    [{ type: [] }, { kind: 'json' }]
  ]
  for (const [schema, field] of cases) t.strictSame(fieldOf(schema), field, JSON.stringify(schema))
  const deep = (levels: number): object =>
    levels === 0 ? { type: 'string' } : { type: 'object', properties: { in: deep(levels - 1) } }
  t.match(JSON.stringify(fieldOf(deep(9))), '"kind":"json"', 'what is nested deeply is written as JSON')
  t.match(fieldOf(order), {
    members: [
      { name: 'dish', title: 'Dish', description: 'What you eat.', isRequired: true, field: { min: 2, pattern: '.+' } },
      { name: 'people', title: 'people', description: '', field: { min: 1, max: 12, step: 1 }, start: '2' },
      { name: 'sides', isRequired: false, start: ['rice'] },
      { name: 'address', start: { street: '' } },
      { name: 'notes', schema: {}, field: { kind: 'json' }, start: '' }
    ]
  })
})

await t.test('a schema that nests without end is JSON', async t => {
  let schema: object = { type: 'number' }
  for (let i = 0; i < 100_000; i += 1) schema = { anyOf: [schema, { type: 'null' }] }
  t.strictSame(fieldOf(schema), { kind: 'json' })
})

await t.test('a field begins with its default, and says what it wants', async t => {
  const cases: [object, unknown, FieldDraft, string][] = [
    [{ type: 'string' }, 'a', 'a', 'text'],
    [{ type: 'string', format: 'date-time' }, undefined, '', 'a date and time'],
    [{ type: 'number' }, 1, '1', 'a number'],
    [{ type: 'integer', minimum: 1, exclusiveMaximum: 9 }, {}, '', 'a whole number from 1 below 9'],
    [{ type: 'boolean' }, true, true, 'yes or no'],
    [{ enum: ['a', 'b', 3] }, 3, '2', 'a, b or 3'],
    [{ enum: ['a'] }, 'z', '', 'a'],
    [{ enum: [1, 2, 3, 4, 5, 6, 7] }, undefined, '', '1, 2, 3, 4, 5, 6 …'],
    [{ const: true }, undefined, '', 'true'],
    [{ type: 'array', items: { type: 'string' } }, undefined, [''], 'a list'],
    [{}, { a: 1 }, '{"a":1}', 'JSON']
  ]
  for (const [schema, given, draft, words] of cases) {
    t.strictSame(startOf(fieldOf(schema), given), draft, JSON.stringify(schema))
    t.equal(fieldWords(fieldOf(schema)), words)
  }
  t.match(startOf(fieldOf(order), { dish: 'soup', other: 1 }), { dish: 'soup', people: '2' })
  t.equal(fieldWords(fieldOf(order)), 'Dish, people, sides, address and notes')
})

await t.test('the input of a field becomes a value, or an error that names the field', async t => {
  const cases: [object, FieldDraft, object][] = [
    [{ const: 1 }, '', { value: 1 }],
    [{ type: 'boolean' }, '', { value: false }],
    [{ enum: ['a', 'b'] }, '1', { value: 'b' }],
    [{ enum: ['a'] }, '', { nothing: true }],
    [{ enum: ['a'] }, '9', { nothing: true }],
    [{ type: 'number' }, ' ', { nothing: true }],
    [{ type: 'number' }, '1.5', { value: 1.5 }],
    [{ type: 'integer' }, '1.5', { wrong: 'It has to be a whole number' }],
    [{ type: 'number' }, 'Infinity', { wrong: 'It has to be a number' }],
    [{ type: 'number', minimum: 2 }, '1', { wrong: 'It has to be a number from 2' }],
    [{ type: 'number', maximum: 2 }, '3', { wrong: 'It has to be a number to 2' }],
    [{ type: 'number', exclusiveMinimum: 0 }, '0', { wrong: 'It has to be a number above 0' }],
    [{ type: 'number', exclusiveMaximum: 0 }, '0', { wrong: 'It has to be a number below 0' }],
    [{ type: 'string' }, '', { nothing: true }],
    [{ type: 'string' }, ['x'], { nothing: true }],
    [{ type: 'string', format: 'time' }, '17:30', { value: '17:30:00' }],
    [{ type: 'string', format: 'date-time' }, '2027-05-01T17:30Z', { value: '2027-05-01T17:30:00.000Z' }],
    [{ type: 'array', items: { type: 'number' } }, ['1', '', '2'], { value: [1, 2] }],
    [{ type: 'array', items: { type: 'number' } }, ['1', 'x'], { wrong: 'It 2 has to be a number' }],
    [{ type: 'array', items: { type: 'number' } }, '', { value: [] }],
    [{}, '', { nothing: true }],
    [{}, '{"a":1}', { value: { a: 1 } }],
    [{}, '{', { wrong: 'It has to be JSON, such as {"colour": "red"}' }],
    [order, '', { wrong: 'Dish is missing in It' }],
    [order, { dish: 'soup', people: '99' }, { wrong: 'people has to be a whole number from 1 to 12' }],
    [
      order,
      { dish: 'soup', people: '2', address: { street: 'Here' } },
      { value: { dish: 'soup', people: 2, sides: [], address: { street: 'Here' } } }
    ]
  ]
  for (const [schema, draft, value] of cases)
    t.strictSame(formValue(fieldOf(schema), draft, 'It'), value, `${JSON.stringify(schema)} ${JSON.stringify(draft)}`)
  t.strictSame(formValue(fieldOf({ ...order, required: ['notes'] }), { address: { street: 'x' } }, ''), {
    wrong: 'notes is missing'
  })
  const hostile = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}') as object
  t.equal(draftIn({}, '__proto__'), undefined)
  t.strictSame(
    formValue(fieldOf(hostile), JSON.parse('{"__proto__":"x"}') as FieldDraft, ''),
    { value: JSON.parse('{"__proto__":"x"}') as object },
    'a member has the name that the agent has chosen'
  )
})

await t.test('terms become a form in which each value has its type', async t => {
  t.match(termsField({ euros: 60, day: 'Friday', extras: null }).members, [
    { name: 'euros', isRequired: true, start: '60', field: { kind: 'number' } },
    { name: 'day', start: 'Friday', field: { kind: 'text' } },
    { name: 'extras', start: 'null', field: { kind: 'json' } }
  ])
})
