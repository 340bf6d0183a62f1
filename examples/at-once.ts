import { defineAgent, rejected, text, textOf } from 'taskchart'

const UNITS = new Map<string | undefined, readonly [factor: number, unit: string]>([
  ['km', [0.621371, 'miles']],
  ['miles', [1.609344, 'km']],
  ['kg', [2.204623, 'pounds']],
  ['pounds', [0.453592, 'kg']]
])

/**
 * Converts units, and completes at once. The work waits for nothing, so the answer to the message that opens the task
 * is the completed task. Units that it does not know are rejected as quickly.
 */
export default defineAgent({
  card: {
    name: 'Units',
    description: 'Converts kilometres and miles, kilograms and pounds.',
    skills: [
      {
        id: 'convert',
        name: 'Convert',
        description: 'Converts the amount in the message.',
        tags: ['units'],
        examples: ['5 km']
      }
    ]
  },
  work: ({ message }) => {
    const { amount, unit } = /(?<amount>\d{1,9}(?:\.\d{1,9})?) *(?<unit>[a-z]+)/.exec(textOf(message))?.groups ?? {}
    const [factor, other] = UNITS.get(unit) ?? []
    if (factor === undefined) return rejected(`Say an amount in ${[...UNITS.keys()].join(', ')}.`)
    return {
      artifact: {
        name: 'answer.txt',
        parts: [text(`${amount} ${unit} are ${(Number(amount) * factor).toFixed(2)} ${other}.`)]
      }
    }
  }
})
