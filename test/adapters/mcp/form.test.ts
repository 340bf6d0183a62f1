import t from 'tap'
import { z } from 'zod'
import { elicitedForm } from '../../../adapters/mcp/form.ts'
import { offerForm, readMove } from '../../../adapters/mcp/offers.ts'
import { StateSeal } from '../../../adapters/mcp/sealed-state.ts'
import { readToolArguments, skillTools, type SkillTool } from '../../../adapters/mcp/tools.ts'
import type { AgentCard } from '../../../machines/protocol/card.ts'
import { INPUT_EXTENSION, NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import { memoryStore } from '../../../runtime/work-port.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'

const formOfZod = (schema: z.ZodType, plain = false) => elicitedForm(z.toJSONSchema(schema), { plain })

await t.test('a question without a schema is a text', t => {
  const { schema, partOf } = elicitedForm(undefined)
  t.match(schema, { properties: { answer: { type: 'string' } }, required: ['answer'] })
  t.strictSame(partOf({ answer: 'yes' }), { text: 'yes' })
  t.strictSame(partOf({}), { text: '' })
  t.strictSame(partOf({ answer: 5 }), { text: '5' })
  t.end()
})

await t.test('the properties of an object are fields, each as loose as its schema or looser', t => {
  const { schema } = formOfZod(
    z.object({
      name: z.string().min(2).max(9).regex(/^a/).meta({ title: 'Name', description: 'Yours.' }),
      mail: z.email().optional(),
      day: z.iso.date().default('2026-01-01'),
      id: z.uuid().optional(),
      count: z.int().gt(3).lt(9),
      whole: z.int().optional(),
      weight: z.number().gt(0).lt(5).multipleOf(0.5),
      sure: z.boolean().default(true),
      size: z.enum(['small', 'large']),
      kind: z.literal('coffee'),
      floor: z.literal([1, 2]),
      extras: z
        .array(z.enum(['milk', 'sugar']))
        .min(1)
        .max(2),
      note: z.string().nullable(),
      either: z.union([z.literal('a'), z.literal('b')]),
      nested: z.object({ x: z.number() }),
      free: z.union([z.string(), z.number()]),
      list: z.array(z.string())
    })
  )
  t.match(schema.properties, {
    name: { type: 'string', title: 'Name', minLength: 2, maxLength: 9, description: 'Yours. Matches ^a.' },
    mail: { type: 'string', format: 'email' },
    day: { type: 'string', format: 'date', default: '2026-01-01' },
    id: { type: 'string', description: /Format: uuid\./ },
    count: { type: 'integer', minimum: 4, maximum: 8 },
    whole: { type: 'integer' },
    weight: { type: 'number', description: 'More than 0. Less than 5. A multiple of 0.5.' },
    sure: { type: 'boolean', default: true },
    size: { type: 'string', enum: ['small', 'large'] },
    kind: { type: 'string', enum: ['coffee'] },
    floor: { type: 'string', enum: ['1', '2'] },
    extras: { type: 'array', items: { type: 'string', enum: ['milk', 'sugar'] }, minItems: 1, maxItems: 2 },
    note: { type: 'string' },
    either: { type: 'string', enum: ['a', 'b'] },
    nested: { type: 'string', description: /^As JSON: \{"type":"object"/ },
    free: { type: 'string', description: /^As JSON: / },
    list: { type: 'string', description: /^As JSON: / }
  })
  for (const [bounds, shown] of [
    [
      { exclusiveMinimum: 1.5, exclusiveMaximum: 4.5 },
      { minimum: 2, maximum: 4 }
    ],
    [
      { exclusiveMinimum: -1.5, exclusiveMaximum: -0.5 },
      { minimum: -1, maximum: -1 }
    ],
    [
      { exclusiveMinimum: 1, exclusiveMaximum: 4 },
      { minimum: 2, maximum: 3 }
    ]
  ] as const)
    t.strictSame(elicitedForm({ type: 'integer', ...bounds }).schema.properties, {
      answer: { type: 'integer', ...shown }
    })
  t.notOk('minimum' in (schema.properties['whole'] ?? {}), 'bounds of safe integers say nothing')
  t.notOk('pattern' in (schema.properties['mail'] ?? {}))
  t.notOk(schema.required?.includes('note') || schema.required?.includes('mail'))
  t.ok(schema.required?.includes('nested'))
  t.end()
})

await t.test('the values of a form become those of the schema', t => {
  const { partOf } = formOfZod(
    z.object({
      floor: z.literal([1, 2]),
      note: z.string().nullable(),
      nested: z.object({ x: z.number() }),
      size: z.enum(['s'])
    })
  )
  t.strictSame(partOf({ floor: '2', nested: '{"x":1}', size: 's' }), {
    data: { floor: 2, nested: { x: 1 }, size: 's', note: null }
  })
  t.strictSame(partOf({ floor: '9', nested: 'no JSON', other: 1, note: 'x' }), {
    data: { floor: '9', nested: 'no JSON', other: 1, note: 'x' }
  })
  t.strictSame(partOf({ nested: 5, floor: 1 }), { data: { nested: 5, floor: 1, note: null } })
  t.end()
})

await t.test('a value that is no object is one field, and what no field can show is JSON', t => {
  const number = formOfZod(z.int().min(1))
  t.match(number.schema, { properties: { answer: { type: 'integer', minimum: 1 } }, required: ['answer'] })
  t.strictSame(number.partOf({ answer: 3 }), { data: 3 })
  t.strictSame(number.partOf({}), { data: '' })
  const nullable = formOfZod(z.string().nullable())
  t.notOk('required' in nullable.schema)
  t.strictSame(nullable.partOf({}), { data: null })
  const choice = elicitedForm({ type: ['string', 'number', 'null'], nullable: true })
  t.match(choice.schema.properties, { answer: { type: 'string', description: /As JSON/ } })
  for (const schema of [
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('a') }),
      z.object({ type: z.literal('b'), x: z.string() })
    ]),
    z.array(z.object({})),
    z.record(z.string(), z.string()),
    z.object(Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`f${i}`, z.string().describe('x'.repeat(50))])))
  ]) {
    const { schema: form, partOf } = formOfZod(schema)
    t.match(form.properties, { answer: { type: 'string', description: /^As JSON: / } })
    t.strictSame(partOf({ answer: '[{}]' }), { data: [{}] })
  }
  t.end()
})

await t.test('references and combinations of one are followed, a circle is JSON', t => {
  const { schema } = elicitedForm({
    type: 'object',
    properties: {
      a: { $ref: '#/$defs/size', description: 'Which?' },
      b: { allOf: [{ type: 'string' }] },
      c: { $ref: 'https://elsewhere.example/' },
      d: { $ref: '#/definitions/none' },
      e: { $ref: '#/$defs/circle' },
      f: { anyOf: [{ type: 'string', maxLength: 3 }, { type: 'null' }] },
      g: { enum: [] },
      h: { anyOf: [] },
      i: true,
      j: { anyOf: [{ type: 'string' }, { const: 1 }] },
      k: { type: 'array', items: { enum: [1] } },
      l: { type: 'integer', nullable: true }
    },
    required: 'a',
    $defs: { size: { enum: ['small', 'large'] }, circle: { $ref: '#/$defs/circle' } }
  })
  t.match(schema.properties, {
    a: { type: 'string', enum: ['small', 'large'], description: 'Which?' },
    b: { type: 'string' },
    c: { description: /As JSON/ },
    d: { description: /As JSON/ },
    e: { description: /As JSON/ },
    f: { type: 'string', maxLength: 3 },
    g: { description: /As JSON/ },
    h: { description: /As JSON/ },
    i: { description: /As JSON/ },
    j: { description: /As JSON/ },
    k: { description: /As JSON/ },
    l: { type: 'integer' }
  })
  t.notOk('required' in schema)
  t.end()
})

await t.test('hosts that show no numbers and no lists get texts', t => {
  const { schema, partOf } = formOfZod(
    z.object({ count: z.int().min(1).max(3).default(2), weight: z.number(), extras: z.array(z.enum(['milk'])) }),
    true
  )
  t.match(schema.properties, {
    count: { type: 'string', default: '2', description: 'A number. At least 1. At most 3.' },
    weight: { type: 'string', description: 'A number.' },
    extras: { type: 'string', description: /As JSON/ }
  })
  t.strictSame(partOf({ count: '3', weight: '0.5', extras: '["milk"]' }), {
    data: { count: 3, weight: 0.5, extras: ['milk'] }
  })
  t.end()
})

const cardWith = (more: Partial<AgentCard>): AgentCard => ({
  name: 'Agent X',
  description: 'Does things.',
  version: '1',
  supportedInterfaces: [],
  capabilities: {},
  defaultInputModes: [],
  defaultOutputModes: [],
  skills: [],
  ...more
})
const withInput = (schema: object) => ({ capabilities: { extensions: [{ uri: INPUT_EXTENSION, params: { schema } }] } })
const skill = (id: string, more: object = {}) => ({ id, name: id, description: '', tags: [], ...more })

await t.test('an agent has a tool for each skill, by names that hosts accept', t => {
  const namesOf = (...ids: string[]) =>
    skillTools(cardWith({ skills: ids.map(id => skill(id)) })).map(({ listed }) => listed.name)
  t.match(namesOf('tea', 'a.b/c', 'task_followup', 'x'.repeat(80), '', 'a_b_c', 'tea'), [
    'tea',
    'a_b_c',
    /^task_followup_[\da-f]{8}$/,
    /^x{55}_[\da-f]{8}$/,
    /^_[\da-f]{8}$/,
    /^a_b_c_[\da-f]{8}$/
  ])
  t.strictSame(namesOf('a.b/c', 'x'), namesOf('a.b/c', 'x'), 'the same each time')
  const [only] = skillTools(cardWith({}))
  t.match(only, { listed: { name: 'Agent_X', title: 'Agent X', description: /^Does things\.\n/ } })
  const [long] = skillTools(
    cardWith({ skills: [skill('a', { description: 'x'.repeat(3000), examples: ['Do it.'] })] }),
    { a: { readOnlyHint: true } }
  )
  t.equal(long?.listed.description?.length, 2001)
  t.strictSame(long?.listed.annotations, { readOnlyHint: true })
  const [example] = skillTools(cardWith({ skills: [skill('a', { examples: ['Do it.'] })] }))
  t.match(example?.listed.description, /\nExample: Do it\.$/)
  t.end()
})

await t.test("the input of a tool is the agent's, with a plain object at its root", t => {
  const inputOf = (schema: object) => skillTools(cardWith(withInput(schema)))[0]?.listed.inputSchema
  t.match(inputOf({ type: 'object', properties: { a: { $ref: '#/$defs/x' } }, required: ['a'], $defs: { x: {} } }), {
    type: 'object',
    properties: { a: {}, contextId: {}, referenceTaskIds: {} },
    required: ['a'],
    $defs: { x: {} }
  })
  for (const schema of [
    { type: 'string', $defs: { x: {} } },
    { type: 'object', properties: { contextId: {} } },
    { type: 'object', properties: {}, anyOf: [] },
    { oneOf: [] }
  ]) {
    const input = inputOf(schema)
    t.match(input, { type: 'object', properties: { input: {} }, required: ['input'] })
    t.notOk('anyOf' in (input ?? {}) || 'oneOf' in (input ?? {}))
  }
  t.end()
})

await t.test('the argument `negotiation` is a move, unless the input of an agent that does not negotiate has it', t => {
  const toolOf = (schema: object | undefined, negotiates: boolean): SkillTool => {
    const extensions = [
      ...(schema ? [{ uri: INPUT_EXTENSION, params: { schema } }] : []),
      ...(negotiates ? [{ uri: NEGOTIATION_EXTENSION, params: {} }] : [])
    ]
    return skillTools(cardWith({ capabilities: { extensions } }))[0] as SkillTool
  }
  const size = { type: 'object', properties: { size: { type: 'string' } }, required: ['size'] }
  const own = { type: 'object', properties: { negotiation: { type: 'string' } } }
  const move = { accept: 'o1' }
  const given = { contextId: 'c', negotiation: move }
  const address = { contextId: 'c' }
  t.strictSame(readToolArguments(toolOf(own, false), { negotiation: 'hard' }), {
    parts: [{ data: { negotiation: 'hard' } }],
    address: {},
    move: undefined
  })
  t.strictSame(readToolArguments(toolOf(undefined, false), given), { parts: [], address, move }, 'the agent refuses it')
  for (const schema of [undefined, size, own, { type: 'string' }]) {
    const tool = toolOf(schema, true)
    const { properties, required } = tool.listed.inputSchema as { properties?: object; required?: string[] }
    t.match(properties, { negotiation: { properties: { accept: {}, decline: {}, propose: {} } } })
    t.equal(required, undefined, 'a move needs nothing else')
    t.strictSame(readToolArguments(tool, given), { parts: [], address, move })
  }
  const both = toolOf(undefined, true)
  t.match(readToolArguments(both, { ...given, data: { a: 1 } }), { parts: [{ data: { a: 1 } }], move })
  t.match(readToolArguments(both, { ...given, message: 5 }), { violations: [{ field: 'message' }] })
  t.match(toolOf(own, true).listed.inputSchema, {
    properties: { input: { properties: { negotiation: { type: 'string' } } } }
  })
  t.strictSame(readToolArguments(toolOf(size, true), { size: 'large' }), {
    parts: [{ data: { size: 'large' } }],
    address: {},
    move: undefined
  })
  t.end()
})

const cardOfTerms = (terms: object) =>
  cardWith({ capabilities: { extensions: [{ uri: NEGOTIATION_EXTENSION, params: { terms } }] } })

await t.test('an offer whose terms have no schema, or too many, is answered with JSON', t => {
  const offer = { offerId: 'o1', round: 1, terms: { euros: 5 }, expiresAt: '' }
  const form = offerForm(offer, cardWith({}), {})
  t.match(form.schema.properties, {
    decision: { enum: ['accept', 'decline', 'propose'] },
    terms: { description: /Other terms, for propose\. As JSON/ }
  })
  const proposed = (terms: object) => ({ value: { propose: { terms } } })
  t.strictSame(form.moveOf({ decision: 'propose', terms: '{"euros":4}' }), proposed({ euros: 4 }))
  for (const nothing of ['', null, undefined])
    t.strictSame(form.moveOf({ decision: 'propose', terms: nothing }), proposed({ euros: 5 }))
  for (const wrong of ['four', '[4]', '4'])
    t.strictSame(form.moveOf({ decision: 'propose', terms: wrong }), {
      violations: [{ field: 'terms', description: 'must be a JSON object' }]
    })
  t.strictSame(form.moveOf({ decision: 'accept' }), { value: { accept: { offerId: 'o1' } } })
  const terms = {
    type: 'object',
    properties: { euros: { $ref: '#/$defs/e' }, day: true },
    $defs: { e: { type: 'number' } }
  }
  const known = offerForm(offer, cardOfTerms(terms), {})
  t.match(known.schema.properties, { euros: { type: 'number', default: 5 }, day: {} })
  t.strictSame(known.moveOf({ decision: 'propose', euros: 4, day: '' }), proposed({ euros: 4 }))
  const many = Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`term${i}`, { type: 'number' }]))
  for (const properties of [many, { euros: {}, decision: {} }, { other: {} }]) {
    const asJson = offerForm(offer, cardOfTerms({ type: 'object', properties }), {})
    t.strictSame(Object.keys(asJson.schema.properties), ['decision', 'terms'])
    t.strictSame(
      asJson.moveOf({ decision: 'propose', terms: '{"decision":"x"}' }),
      proposed({ euros: 5, decision: 'x' })
    )
  }
  const inherited = offerForm({ ...offer, terms: { toString: 1 } }, cardOfTerms({ type: 'object', properties: {} }), {})
  t.ok('terms' in inherited.schema.properties)
  t.end()
})

await t.test('a counter-offer keeps each term that the user left as it was, whatever its name', t => {
  const terms = { terms: 'net 30', answer: 'x', note: 'by train', euros: 5 }
  const properties = {
    terms: { type: 'string' },
    answer: { type: 'string' },
    note: { type: ['string', 'null'] },
    euros: { type: 'number' }
  }
  const { moveOf } = offerForm({ offerId: 'o1', terms }, cardOfTerms({ type: 'object', properties }), {})
  t.strictSame(moveOf({ decision: 'propose', terms: 'net 60', answer: 'y' }), {
    value: { propose: { terms: { terms: 'net 60', answer: 'y', note: 'by train', euros: 5 } } }
  })
  t.strictSame(moveOf({ decision: 'propose', note: null }), { value: { propose: { terms: { ...terms, note: null } } } })
  const nested = { type: 'object', properties: { terms: { type: 'object' }, euros: { type: 'number' } } }
  const other = offerForm({ offerId: 'o1', terms: { terms: { days: 30 }, euros: 5 } }, cardOfTerms(nested), {})
  t.strictSame(other.moveOf({ decision: 'propose', terms: '{"days":60}' }), {
    value: { propose: { terms: { terms: { days: 60 }, euros: 5 } } }
  })
  t.end()
})

await t.test('the argument of a tool is one move, else the violations name what is wrong', t => {
  t.strictSame(readMove({ accept: 'o1' }), { value: { accept: { offerId: 'o1' } } })
  t.strictSame(readMove({ decline: 'o1', propose: null }), { value: { decline: { offerId: 'o1' } } })
  t.strictSame(readMove({ propose: { euros: 4, offerId: 'x' } }), {
    value: { propose: { terms: { euros: 4, offerId: 'x' } } }
  })
  for (const [argument, field, description] of [
    [{ accept: 'o1', decline: 'o1' }, 'negotiation', /must have exactly one of propose, accept, decline/],
    [{ accept: 'o1', propose: { euros: 1 } }, 'negotiation', /must have exactly one of propose, accept, decline/],
    [{}, 'negotiation', /must have exactly one of/],
    [null, 'negotiation', /must be an object/],
    ['accept', 'negotiation', /must be an object/],
    [{ accept: 5 }, 'negotiation.accept', /must be/],
    [{ propose: [] }, 'negotiation.propose', /must be an object/]
  ] as const)
    t.match(readMove(argument), { value: undefined, violations: [{ field, description }] }, JSON.stringify(argument))
  t.end()
})

await t.test('a seal opens in every process of the store, and its keys change after a month', async t => {
  const store = memoryStore()
  const options = { store: { ...store, close: async () => {} } }
  const first = start(t, { work: () => {} }, options)
  const call = { principal: 'anna' }
  const seal = new StateSeal(first.runtime)
  const [one, two] = await Promise.all([seal.seal({ x: 1 }, call), new StateSeal(first.runtime).seal({ x: 2 }, call)])
  const second = start(t, { work: () => {} }, { ...options, clock: first.clock })
  const other = new StateSeal(second.runtime)
  t.strictSame([await other.open(one, call), await other.open(two, call)], [{ x: 1 }, { x: 2 }])
  t.equal(await other.open(one, { principal: 'ben' }), undefined)
  t.equal(await other.open(one, { principal: 'anna', tenant: 'blue' }), undefined)
  t.equal(await other.open(one, {}), undefined)
  const { readNote } = second.runtime
  const unread = () => t.fail('a text that is too short is no reason to read the store')
  Object.assign(second.runtime, { readNote: unread })
  for (const short of ['', one.slice(0, 20), 'x'.repeat(44)]) t.equal(await other.open(short, call), undefined)
  Object.assign(second.runtime, { readNote })
  t.equal(await other.open('x'.repeat(46), call), undefined)
  const month = 31 * 24 * 60 * 60 * 1000
  first.clock.increment(month)
  const three = await other.seal({ x: 3 }, call)
  t.strictSame(
    [await seal.open(one, call), await seal.open(three, call)],
    [{ x: 1 }, { x: 3 }],
    'the newest two are accepted'
  )
  first.clock.increment(month)
  const four = await other.seal({ x: 4 }, call)
  t.strictSame([await other.open(three, call), await other.open(four, call)], [{ x: 3 }, { x: 4 }])
  t.equal(await new StateSeal(first.runtime).open(one, call), undefined)
})
