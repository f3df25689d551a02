// Messages of a WebSocket, or events of a stream, as they pass.
import { Badge, Group, Paper, Text, Title } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useLayoutEffect, useRef } from 'react'
import { API, LIMITS, type Message, type MessageList } from '../../../../src/inspector/api.ts'
import { QueryResult, SkeletonRows } from '../../components/lists/query-states.tsx'
import { formatBytes, formatCount } from '../../format.ts'
import { call } from '../api.ts'
import { formatDuration } from '../list/format.ts'
import classes from './detail.module.css'

const REFRESH_MS = 200
/** The list follows new messages while it is scrolled this close to its end. */
const AT_END_PX = 40

interface MessagesProps {
  id: string
  /** How many there were so far. */
  count: number
}

const lastNumber = (list: MessageList | undefined) => list?.messages.at(-1)?.number ?? 0

/** Reads only the messages that it does not have. */
function useMessages({ id, count }: MessagesProps) {
  const queryClient = useQueryClient()
  const queryKey = ['messages', id]
  return useQuery({
    queryKey,
    queryFn: async ({ signal }): Promise<MessageList> => {
      const known = queryClient.getQueryData<MessageList>(queryKey)
      const query = { after: lastNumber(known) }
      const { messages, dropped } = await call<MessageList>(API.messages(id), { query, signal })
      return { messages: [...(known?.messages ?? []), ...messages].slice(-LIMITS.messages), dropped }
    },
    refetchInterval: ({ state: { data, error } }) =>
      !error && lastNumber(data) < count ? REFRESH_MS : false,
    structuralSharing: false,
  })
}

export function Messages({ id, count }: MessagesProps) {
  const query = useMessages({ id, count })
  return (
    <Paper component="section" className={classes.part ?? ''} aria-label="Messages">
      <Group className={classes.partHead ?? ''} justify="space-between" gap="xs">
        <Title order={3} size="h6">
          Messages
        </Title>
        <Text size="xs" c="dimmed" className="tabular">
          {formatCount(count)}
          {query.data &&
            query.data.dropped > 0 &&
            ` · the oldest ${formatCount(query.data.dropped)} not kept`}
        </Text>
      </Group>
      <QueryResult query={query} skeleton={<SkeletonRows count={2} />}>
        {({ messages }) => <List messages={messages} />}
      </QueryResult>
    </Paper>
  )
}

function List({ messages }: { messages: readonly Message[] }) {
  const list = useRef<HTMLUListElement>(null)
  const isAtEnd = useRef(true)
  useLayoutEffect(() => {
    if (isAtEnd.current) list.current?.scrollTo({ top: list.current.scrollHeight })
  }, [messages])
  if (messages.length === 0)
    return (
      <Text size="sm" c="dimmed" p="md">
        No messages yet.
      </Text>
    )
  const onScroll = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }: React.UIEvent) => {
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < AT_END_PX
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
    <ul className={classes.messages} ref={list} tabIndex={0} aria-label="Messages" onScroll={onScroll}>
      {messages.map((message) => (
        <MessageRow key={message.number} message={message} />
      ))}
    </ul>
  )
}

const senders = {
  client: { label: '↑ Client', color: 'teal' },
  server: { label: '↓ Server', color: 'amber' },
} as const

function MessageRow({ message }: { message: Message }) {
  const { from, type, ms, bytes, cut, text, event, eventId, code, problem } = message
  const details = [
    type === 'sse' ? (event ?? 'message') : type,
    eventId !== undefined && `id ${eventId}`,
    code !== undefined && `code ${code}`,
    formatBytes(bytes),
    cut && 'cut',
    formatDuration(ms),
  ]
  return (
    <li>
      <Group gap="xs" wrap="nowrap">
        <Badge size="sm" color={senders[from].color}>
          {senders[from].label}
        </Badge>
        <Text size="xs" c="dimmed" className="tabular">
          {details.filter(Boolean).join(' · ')}
        </Text>
      </Group>
      {problem && <Text size="xs">{problem}</Text>}
      {text !== '' && <pre>{text}</pre>}
    </li>
  )
}
