"""Floor 1: what the bytes mean. Pure: bytes in, values out, and back. `profile` is what one endpoint accepts.

Writing, from the whole to the part
    request    entries, tools and a profile → a body; each group of messages is encoded once
    groups     a history cut into what can be encoded by itself
    messages   one group as messages; parts: text, images and files in them
    diet       tool schemas as an endpoint can take them
    labels     tool names and call ids in the spelling that it takes
    compact    JSON as it is sent
    history    messages from anywhere → entries, and back

Reading, from the bytes to the call
    stream     one body as it arrives (reply: one that came whole); sse: its bytes as events
    chunks     a stream's chunks → deltas, and one completion; increments, merging and slots (slot: one call) put
               the pieces of texts, messages and calls together; shown: what a person may see by then
    completion one completion → a `Reply`; bodies: where things are in it (foreign: in another API's shape);
               finish, usage, reasoning: its parts
    calls      its tool calls; names and arguments: the two ladders. Below arguments: strictjson, relaxed (almost-JSON),
               numbertexts, and fits (whether an object looks like a tool's arguments)
    textcalls/ calls written as text, read and written

Refusals, from the answer to the change
    rejection  an error answer → one of the kinds of judgement: retry, adapt, compact, salvage or raise
    said       what its body says (searched: as the rules search it); sent: what our request held; vocabulary: the
               words in which endpoints refuse
    request_ids  what support asks for
    refusals   what to change: options, refused_tools and refused_messages hold the rules, rule what one is made of
    mistakes   settings that no endpoint could take, which are the user's to change
    overflow   whether the window is full; waits: how long to wait
"""
