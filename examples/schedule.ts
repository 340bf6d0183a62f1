import { defineAgent, progress, rejected, text, textOf } from 'taskchart'

const MS = { s: 1000, second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 }
const REMINDER = /in (?<when>(?<count>\d{1,6}) ?(?<unit>second|minute|hour|day|s)s?)\b,? *(?:to |that )?(?<what>.*)/i

/**
 * Reminds you later. The work says when it will be done, and sleeps. Meanwhile the client may disconnect, and check
 * with `taskchart watch`. With `--db FILE` the process may restart, too: the sleep continues.
 */
export default defineAgent({
  card: {
    name: 'Reminder',
    description: 'Reminds you later.',
    skills: [
      {
        id: 'remind',
        name: 'Remind',
        description: 'Reminds you of what the message says, when it says.',
        tags: ['time'],
        examples: ['remind me in 10 minutes to call Ann']
      }
    ]
  },
  work: async function* ({ message, sleep }) {
    const { when, count, unit = '', what } = REMINDER.exec(textOf(message))?.groups ?? {}
    const ms = Object.entries(MS).find(([name]) => name === unit.toLowerCase())?.[1]
    if (ms === undefined) return rejected('Say when, and of what: remind me in 10 minutes to call Ann.')
    yield progress(`I will remind you in ${when}.`)
    await sleep(Number(count) * ms)
    return { artifact: { name: 'reminder.txt', parts: [text(`Remember: ${what}`)] } }
  }
})
