import type { ArtifactChoice } from './artifact-choices.ts'

/** The words for the first places of a list. */
const PLACES = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth']

/** A place in a list: "the second one", "2nd". Not "a second", which is a time. */
const ORDINAL = new RegExp(String.raw`(?<!\ba )\b(?:(${PLACES.join('|')})|(\d{1,2})(?:st|nd|rd|th))\b`, 'giu')

/** An answer that is little more than a number: "2", "number 2, please". */
const NUMBER = /^\W*(?:(?:the|number|no|nr|option|one|picture|artifact|file)\W+){0,2}(\d{1,2})(?:\W+(?:please|thanks))?\W*$/iu

/** Words with which a client says what it does not mean, or does not know. */
const NEGATIVE = /\b(?:not|no|none|neither|nor|never|without|except|other|another|unsure)\b|n['’]t\b/iu

/** Words that tell nothing of an artifact. */
const COMMON = new Set('a an and are as at be but by do for from i in is it its me mean my of on one or please that the these this those to want was we with would you your'.split(' '))

/** The choice whose place in the list an answer says; `undefined` if it says none, or several. */
export function chosenByPlace(choices: readonly ArtifactChoice[], text: string): ArtifactChoice | undefined {
  const number = NUMBER.exec(text)?.[1]
  if (number !== undefined) return choices[Number(number) - 1]
  const [place, ...others] = text.matchAll(ORDINAL)
  if (!place || others.length > 0 || isNegative(text)) return undefined
  const [, word, figure] = place
  return choices[word === undefined ? Number(figure) - 1 : PLACES.indexOf(word.toLowerCase())]
}

/** The choices of whose name and description an answer has the most words, if that leaves some of them out. */
export function chosenByWords(choices: readonly ArtifactChoice[], text: string): ArtifactChoice[] {
  if (isNegative(text)) return []
  const said = wordsIn(text)
  const scores = choices.map(({ name, description = '' }) => [...wordsIn(`${name} ${description}`)].filter(word => said.has(word)).length)
  const most = Math.max(...scores)
  const best = choices.filter((_, i) => scores[i] === most)
  return best.length < choices.length ? best : []
}

/** Whether an answer says what it does not mean, so that the words in it are not to be trusted. */
export function isNegative(text: string): boolean {
  return NEGATIVE.test(text)
}

function wordsIn(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{M}]+/gu)?.filter(word => !COMMON.has(word)))
}
