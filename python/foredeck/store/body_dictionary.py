"""The text that bodies are deflated against: what documents of each type have in common.

Part of the file format. A stored body can only be read with the very same bytes, so this never
changes; a better dictionary gets a number (and an encoding) of its own.
"""

from __future__ import annotations

DICTIONARY_1 = b"".join(
    (
        b'{"cwd":"/home/user/","harness":"pi","host_file":null,"locked":false,"nickname":null,'
        b'"parent_session":null,"provenance":{"generator":"system","origin":"foredeck",'
        b'"parent_refs":[]},"session_id":"","source":null,"source_hash":null,'
        b'"system_prompt_ref":"system_prompt:","chat_ref":"chat:","view":null}',
        b'{"locked":true,"messages":[],"session_ref":"session:","tools":[{"description":"",'
        b'"name":"","parameters":{"type":"object","required":[],"properties":{"type":"string",'
        b'"number"}}}],"turn_count":1}',
        b'"object":null,"provenance":{"generator":"human","origin":"/foredeck name",'
        b'{"generator":"agent","origin":',
        b'{"char_count":0,"file_type":"typescript","python","markdown","json","locked":false,'
        b'"moved_to":null,"nickname":null,"provenance":{"generator":"tool","origin":"read",'
        b'"parent_refs":[]},"source":{"filesystemId":"","path":"/home/user/src/",'
        b'"type":"filesystem"},"source_hash":"","state":"listed","deleted","text","view":null}',
        b'{"args":{"edits":[{"newText":"","oldText":""}],"content":"","limit":,"offset":,'
        b'"pattern":"","timeout":,"command":"cd  && npm test","path":""},"args_display":"",'
        b'"chat_ref":"chat:","details":{"diff":"","firstChangedLine":,"truncation":null},'
        b'"file_pin":{"lines":null,"content_hash":"","metadata_view_hash":"","object":"",'
        b'"text_hash":"","token":"self","version":1},"file_refs":[],"full_output":null,'
        b'"images":[],"locked":false,"nickname":null,"position":0,"provenance":{"generator":'
        b'"tool","origin":"bash","parent_refs":[]},"provider_call_id":"toolu_01","source":null,'
        b'"source_hash":null,"status":"fail","status":"ok","tool":"write","tool":"edit",'
        b'"tool":"grep","tool":"read","tool":"bash","turn_ref":"turn:","view":null}',
        b'{"assistant":"","assistant_meta":{"api":"anthropic-messages","model":"","provider":"",'
        b'"stopReason":"toolUse","usage":{"cacheRead":0,"cacheWrite":0,"input":0,"output":0}},'
        b'"locked":false,"nickname":null,"others":[],"provenance":{"generator":"system",'
        b'"origin":"foredeck","parent_refs":[]},"session":"","source":null,"source_hash":null,'
        b'"toolcall_ids":["toolu_01"],"user":null,"user_turn":1,"view":null}',
        b'{"label":"","locked":false,"nickname":null,"object":"","object_type":"file",'
        b'"object_type":"toolcall","ordinal":1,"pin":{"content_hash":"","metadata_view_hash":"",'
        b'"object":"","text_hash":null,"token":"self","version":1},"provenance":{"generator":'
        b'"system","origin":"foredeck","parent_refs":[]},"session":"","source":null,'
        b'"source_hash":null,"view":null}',
        b'{"decision":{"kind":"host","kind":"rebase","kind":"append","reason":""},"drops":[],'
        b'"inserts":[],"keys":[[null,""],["",""]],"kept":0,"layout":"anchored","locked":false,'
        b'"model":{"api":"anthropic-messages","contextWindow":200000,"cost":{"cacheRead":0.3,'
        b'"cacheWrite":3.75,"input":3,"output":15},"id":"","input":["text","image"],'
        b'"promptCache":{"short":300},"provider":"anthropic","reasoning":true},"nickname":null,'
        b'"ordinal":1,"outcome":"sent","parent":"call:","parts":[[]],"policy":"seed-window",'
        b'"provenance":{"generator":"system","origin":"foredeck","parent_refs":[]},"session":"",'
        b'"sets":{"active+":[],"active-":[],"pool+":[]},"source":null,"source_hash":null,'
        b'"state":{},"stats":{},"system":null,"time_ms":17,"tip":"","view":null}',
    )
)
"""About 3 KB; what is likeliest to be repeated stands last, where a reference costs least."""
