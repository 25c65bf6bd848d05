-- Runs in sysbench: its own transactions, and beside them an account of which were committed.
--
-- Each writing transaction also puts its number into the table "ledger". What the database said of
-- it is kept here: a number that was told as committed must be in that table on every node
-- afterwards, one that was told as undone must not be, and only of one whose answer was lost
-- nobody knows.
--
-- While a server is taken away, the load goes on until it is back: each client makes its share, and
-- then more, until a file says that it is over.

require("oltp_" .. os.getenv("LEDGER_MODE"))

local ffi = require("ffi")
ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } ledger_time_t;
int clock_gettime(int clock, void *time);
int poll(void *files, unsigned long count, int milliseconds);
int access(const char *path, int mode);
]]

local PHASE = tonumber(os.getenv("LEDGER_PHASE"))
local WRITES = os.getenv("LEDGER_WRITES") == "yes"
local UNDONE = {[1213] = true, [1205] = true, [1020] = true}
local LOST = {[2002] = true, [2003] = true, [2006] = true, [2011] = true, [2013] = true,
   [2055] = true}
local TRIES = 3000
local PAUSE_MILLISECONDS = tonumber(os.getenv("LEDGER_PAUSE_MILLISECONDS"))
local TENTHS_PER_SECOND = 10
local SHARE = tonumber(os.getenv("LEDGER_SHARE"))  -- of a client; nil: sysbench ends it

local number = 0        -- of the transaction at hand
local done = 0          -- transactions that were told as committed
local told = false      -- whether it was said that the share is done
local asked = false     -- whether its end was asked for
local first, last = 1, 0  -- numbers that were told as committed, without a gap
local lines = {}
local good, lost, kinds = {}, {}, {}
local clock = ffi.new("ledger_time_t")

local function tenth()
   ffi.C.clock_gettime(0, clock)
   return tonumber(clock.seconds) * TENTHS_PER_SECOND
      + math.floor(tonumber(clock.nanoseconds) * TENTHS_PER_SECOND / 1e9)
end

local function count(counts, key)
   counts[key] = (counts[key] or 0) + 1
end

local function close_range()
   if last >= first then
      lines[#lines + 1] = string.format("committed %d %d", first, last)
   end
end

function commit()
   number = number + 1
   if WRITES then
      con:query(string.format("INSERT INTO ledger VALUES (%d, %d, %d)", PHASE, sysbench.tid, number))
   end
   asked = true
   stmt.commit:execute()
   asked = false
   if number ~= last + 1 then
      close_range()
      first = number
   end
   last = number
   done = done + 1
   count(good, tenth())
end

local transact = event

-- sysbench does not count an event that says it is the end.
function event(thread)
   if SHARE and done >= SHARE then
      if not told then
         told = assert(io.open(string.format("share-%d", sysbench.tid), "w")):close()
      end
      if ffi.C.access("over", 0) == 0 then
         return true
      end
   end
   transact(thread)
end

-- sysbench would use a connection of MariaDB's library again after closing it, and crash.
local function connect_again()
   pcall(close_statements)
   pcall(con.disconnect, con)
   for _ = 1, TRIES do
      local made, found = pcall(drv.connect, drv)
      if made then
         con, stmt, param = found, {}, {}
         for number = 1, sysbench.opt.tables do
            stmt[number], param[number] = {}, {}
         end
         if pcall(prepare_statements) then
            return
         end
         pcall(con.disconnect, con)
      end
      ffi.C.poll(nil, 0, PAUSE_MILLISECONDS)
   end
   error("no server takes a connection")
end

function sysbench.hooks.sql_error_ignorable(problem)
   return LOST[problem.sql_errno] or false
end

function sysbench.hooks.before_restart_event(problem)
   local code = problem.sql_errno
   count(kinds, code)
   if not UNDONE[code] then
      count(lost, tenth())
      if asked then
         lines[#lines + 1] = string.format("unknown %d", number)
      end
   end
   asked = false
   if LOST[code] then
      connect_again()
   elseif not UNDONE[code] then
      -- The server is away from the others and refuses at once: leave it some time.
      ffi.C.poll(nil, 0, PAUSE_MILLISECONDS)
   end
end

local finish = thread_done

function thread_done()
   close_range()
   local out = assert(io.open(string.format("ledger-%d.txt", sysbench.tid), "w"))
   for _, line in ipairs(lines) do
      out:write(line, "\n")
   end
   for name, counts in pairs({good = good, lost = lost, kind = kinds}) do
      for key, value in pairs(counts) do
         out:write(string.format("%s %d %d\n", name, key, value))
      end
   end
   out:write(string.format("last %d\n", number))
   assert(out:close())
   finish()
end
