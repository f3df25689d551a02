import { Paper, SimpleGrid, Stack, Text, Title, Transition } from '@mantine/core'
import { type ReactNode, useEffect, useState } from 'react'

interface SectionProps {
  title: string
  lead: string
  children: ReactNode
}

export function Section({ title, lead, children }: SectionProps) {
  return (
    <Paper p="lg" component="section">
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Stack gap={4}>
          <Title order={2} size="h4">
            {title}
          </Title>
          <Text size="sm" c="dimmed" maw={380}>
            {lead}
          </Text>
        </Stack>
        <div>{children}</div>
      </SimpleGrid>
    </Paper>
  )
}

/** Long enough to be read, and gone before the next change is made. */
const SHOWN_MS = 5_000

/** Says that something was done, also to those who do not see it. */
export function Done({ when, children }: { when: boolean; children: string }) {
  const [isOver, setOver] = useState(false)
  useEffect(() => {
    setOver(false)
    if (!when) return
    const timer = setTimeout(() => setOver(true), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [when])
  return (
    <Text size="sm" c="var(--mantine-color-green-text)" role="status">
      <Transition mounted={when && !isOver} duration={400} keepMounted={false}>
        {(styles) => <span style={styles}>{children}</span>}
      </Transition>
    </Text>
  )
}
