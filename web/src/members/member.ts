// A member of a workspace, as the API lists it.
import type { Output } from '../api.ts'

export type Member = Output<'members.list'>['members'][number]
