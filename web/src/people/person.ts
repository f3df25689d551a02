// Somebody in a workspace, as the list of people has them.
import type { Answer } from '../api.ts'

export type Person = Answer<'people.list'>['people'][number]
