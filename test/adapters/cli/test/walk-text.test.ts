import t from 'tap'
import { walkMermaid, type Refuted } from '../../../../adapters/cli/test/prove.ts'
import { CHROMIUM } from '../../../fixtures/pages/chromium.ts'
import { openMermaid } from '../../../fixtures/pages/mermaid-page.ts'

/** A counterexample in which each of these senders takes a step. */
function walkOf(senders: readonly string[], text: string): Refuted {
  const step = {
    says: text,
    from: 'client',
    state: { [text]: 'on', two: 'off' },
    told: ['INPUT_REQUIRED', text],
    sent: [text],
    choices: []
  }
  const walk = {
    opening: text,
    begins: step,
    steps: senders.map(from => ({ ...step, from })),
    again: [step],
    kind: 'loop'
  }
  return { property: text, walk } as unknown as Refuted
}

await t.test('senders with similar names are participants of their own', t => {
  const text = walkMermaid(walkOf(['a b', 'a.b', '質問', '完了', 'task', 'end'], 'Hello'))
  t.strictSame(
    text.match(/participant .*/g),
    [
      'client as client',
      'task as task',
      'a_b as a b',
      'a_b_ as a.b',
      '質問 as 質問',
      '完了 as 完了',
      'task_ as task',
      'end_ as end'
    ].map(lane => `participant ${lane}`)
  )
  t.match(text, '  task_->>task: Hello\n')
  t.end()
})

await t.test(
  'mermaid shows a counterexample with any text',
  { skip: CHROMIUM === undefined && 'no Chromium on this machine' },
  async t => {
    const draw = await openMermaid(t)
    const words = [
      'participant',
      'actor',
      'as',
      'loop',
      'end',
      'note',
      'over',
      'alt',
      'else',
      'par',
      'and',
      'rect',
      'box',
      'title',
      'link',
      'create',
      'activate',
      'autonumber',
      'client',
      'task',
      'a',
      'A',
      '',
      '%%',
      'a-b',
      'a b'
    ]
    for (const text of ['the client says "yes"', 'a; b # c #59; %% d', '<b>x</b>', '質問: 🚀', '']) {
      const { error, texts } = await draw(walkMermaid(walkOf(words, text)))
      t.equal(error, undefined, text)
      t.ok(texts.includes(text), `${text} is seen`)
      for (const word of words) t.ok(texts.includes(word), `${word} is a participant`)
    }
  }
)
