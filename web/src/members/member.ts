// Somebody in a workspace, as the list of people has them.
import type { Output } from '../api.ts'

export type Member = Output<'members.list'>['people'][number]
